package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A fakeWitness is a witness in memory (c2sp.org/tlog-witness), which can misbehave.
type fakeWitness struct {
	t      *testing.T
	log    note.Verifier
	signer *torchwood.CosignatureSigner
	size   int64
	root   tlog.Hash
	asked  int
	answer func(honest *http.Response) *http.Response // nil: the honest one
}

func newWitness(t *testing.T) *fakeWitness {
	signer, err := torchwood.NewCosignatureSigner("witness.example", newPrivateKey(7))
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(verifierKey(t, testLog, newKey(1)))
	if err != nil {
		t.Fatal(err)
	}
	return &fakeWitness{t: t, log: v, signer: signer}
}

// RoundTrip answers a request for a cosignature.
func (w *fakeWitness) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked++
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.String() != "https://witness.example/log/add-checkpoint" || r.Method != http.MethodPost {
		w.t.Errorf("%v: %s %s", err, r.Method, r.URL)
	}
	status, text := w.judge(string(body))
	answer := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
	if w.answer != nil {
		answer = w.answer(answer)
	}
	return answer, nil
}

func (w *fakeWitness) judge(body string) (status int, text string) {
	head, signed, _ := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	n, errNote := note.Open([]byte(signed), note.VerifierList(w.log))
	if err != nil || errNote != nil {
		return http.StatusForbidden, ""
	}
	c, err := torchwood.ParseCheckpoint(n.Text)
	if err != nil || old > c.N {
		return http.StatusBadRequest, ""
	}
	if old != w.size {
		return http.StatusConflict, fmt.Sprintf("%d\n", w.size)
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return http.StatusBadRequest, ""
		}
		proof = append(proof, hash)
	}
	switch {
	case old == 0 && len(proof) > 0, old == c.N && c.Hash != w.root:
		return http.StatusUnprocessableEntity, ""
	case 0 < old && old < c.N && tlog.CheckTree(proof, c.N, c.Hash, old, w.root) != nil:
		return http.StatusUnprocessableEntity, ""
	}
	w.size, w.root = c.N, c.Hash
	both, err := note.Sign(n, w.signer)
	if err != nil {
		w.t.Error(err)
	}
	return http.StatusOK, string(both[bytes.LastIndex(both[:len(both)-1], []byte("\n"))+1:])
}

// ask asks the witness of a gate for the last checkpoint, and writes the line with its cosignature.
func (g *gate) ask(w *fakeWitness, now bool) {
	if !g.log.Ask(&http.Client{Transport: w}, now) {
		return
	}
	if line := g.log.Answered(<-g.log.Answers()); line != nil {
		g.write(line)
	}
}

// withWitness starts a gate with a witness.
func withWitness(t *testing.T, dir string, w *fakeWitness) *gate {
	g := start(t, dir)
	g.o.Witnesses = []Witness{{URL: "https://witness.example/log/", Key: w.signer.Verifier().String()}}
	g.o.Log = slog.New(slog.DiscardHandler)
	g.open()
	return g
}

func verifyWitnessed(t *testing.T, dir string, w *fakeWitness) *Verifier {
	t.Helper()
	keys, err := ParseKeys([]string{verifierKey(t, testLog, newKey(1))}, []string{w.signer.Verifier().String(), w.signer.Verifier().String()})
	if err != nil {
		t.Fatal(err)
	}
	return verified(t, VerifyOptions{Keys: keys}, read(t, filepath.Join(dir, "audit.jsonl")))
}

// TestWitness: a witness cosigns a log that grows, also after the gate was killed at any time, and the verifier
// says what it has not seen.
func TestWitness(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(t)
		g := withWitness(t, dir, w)
		for range 5 {
			g.entries(3)
			g.checkpoint(false)
			g.ask(w, false)
			time.Sleep(askInterval) // fake clock
		}
		if s := g.log.Witnesses()[0]; s.Size != 15 || s.Error != "" || s.Name != "witness.example" || w.asked != 5 {
			t.Errorf("%d questions, %+v", w.asked, s)
		}
		g.entries(1)
		g.checkpoint(false)
		g.entries(2) // killed
		g.open()
		g.entries(1)
		g.checkpoint(false)
		g.ask(w, false)

		// Killed between the witness's cosignature and its arrival.
		g.entries(1)
		g.checkpoint(false)
		if !g.log.Ask(&http.Client{Transport: w}, true) {
			t.Fatal("not asked")
		}
		synctest.Wait()
		g.open()
		g.entries(4)
		g.checkpoint(false)
		g.ask(w, true) // 409: it has cosigned what the gate did not know of
		g.ask(w, false)
		if s := g.log.Witnesses()[0]; s.Size != g.log.Size() || s.Error != "" || w.size != g.log.Size() {
			t.Errorf("the witness has %d of %d, %+v", w.size, g.log.Size(), s)
		}
		v := verifyWitnessed(t, dir, w)
		if v.Faulty > 0 || len(v.Notes) > 0 || len(v.Logs) != 1 || len(v.Logs[0].Cosigned) != 1 || v.Logs[0].Cosigned[0].Size != g.log.Size() ||
			v.Logs[0].Checkpoints[len(v.Logs[0].Checkpoints)-1].Cosigned != 1 {
			t.Errorf("faults %q, notes %q, logs %+v", v.Faults, v.Notes, v.Logs)
		}
		g.entries(1)
		time.Sleep(2 * maxUncosigned) // fake clock
		g.entries(1)
		g.checkpoint(true)
		if v := verifyWitnessed(t, dir, w); v.Faulty != 1 || !strings.Contains(v.Faults[0], "witness witness.example has cosigned 24 records, and not those written since") {
			t.Errorf("faults %q", v.Faults)
		}
	})
}

// TestRewrittenWithKey: the holder of the gate's key can't rewrite records that a witness has cosigned, whether with no
// cosignature or with those of the true log.
func TestRewrittenWithKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(t)
		written := func(id int, checkpoints ...int64) (file string) {
			dir := t.TempDir()
			g := withWitness(t, dir, w)
			g.id = id
			for _, size := range checkpoints {
				time.Sleep(2 * maxUncosigned) // fake clock
				g.entries(int(size - g.log.Size()))
				g.checkpoint(false)
				g.ask(w, true)
				g.ask(w, true) // the first answer may have been 409
			}
			return filepath.Join(dir, "audit.jsonl")
		}
		file := written(0, 3, 5)
		if v := verifyWitnessed(t, filepath.Dir(file), w); v.Faulty > 0 || w.size != 5 {
			t.Fatalf("the true log: faults %q, %d records are cosigned", v.Faults, w.size)
		}
		var cosigned strings.Builder
		for line := range strings.Lines(read(t, file)) {
			if strings.Contains(line, "— witness.example ") {
				cosigned.WriteString(line)
			}
		}
		for _, sizes := range [][]int64{{3, 5}, {2, 6}} {
			file := written(100, sizes...)
			text := read(t, file)
			for _, more := range []string{"", cosigned.String()} {
				if err := os.WriteFile(file, []byte(text+more), 0o600); err != nil {
					t.Fatal(err)
				}
				if v := verifyWitnessed(t, filepath.Dir(file), w); v.Faulty == 0 {
					t.Errorf("a log with checkpoints of %v records and then %q is accepted", sizes, more)
				}
			}
		}
	})
}

// TestWitnessAgain: a witness cosigns the log again, whatever happened to its answers.
func TestWitnessAgain(t *testing.T) {
	lost := func(*http.Response) *http.Response {
		return &http.Response{StatusCode: 503, Body: http.NoBody}
	}
	for _, test := range []struct {
		name string
		do   func(g *gate, w *fakeWitness)
	}{
		{"killed before the answer, and no record since", func(g *gate, w *fakeWitness) {
			g.log.Ask(&http.Client{Transport: w}, true)
			synctest.Wait()
			g.open()
		}},
		{"killed before the cosignature was written, and no record since", func(g *gate, w *fakeWitness) {
			g.log.Ask(&http.Client{Transport: w}, true)
			g.log.Answered(<-g.log.Answers())
			g.open()
		}},
		{"it cosigned the first of many questions, and no answer came", func(g *gate, w *fakeWitness) {
			w.answer = lost
			for range 3 * maxAsked {
				g.ask(w, true)
				g.entries(1)
				g.checkpoint(false)
			}
			w.answer = nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWitness(t)
				g := withWitness(t, dir, w)
				g.entries(1)
				g.checkpoint(false)
				test.do(g, w)
				if g.fresh {
					g.checkpoint(false)
				}
				g.ask(w, true)
				g.ask(w, true) // the first answer may have been 409
				v := verifyWitnessed(t, dir, w)
				if v.Faulty > 0 || v.Logs[0].Cosigned[0].Size != g.log.Size() {
					t.Errorf("faults %q, cosigned %+v of %d records; %+v", v.Faults, v.Logs[0].Cosigned, g.log.Size(), g.log.Witnesses()[0])
				}
			})
		})
	}
}

// TestSeveralWitnesses: the answers of witnesses arrive while entries have no checkpoint yet, and the gate is killed. What
// is kept still fits the last checkpoint.
func TestSeveralWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := newWitness(t), newWitness(t)
		g := withWitness(t, t.TempDir(), w)
		g.o.Witnesses = append(g.o.Witnesses, Witness{URL: "https://other.example/log/", Key: g.o.Witnesses[0].Key})
		g.open()
		g.entries(1)
		g.checkpoint(false)
		both := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "other.example" {
				r.URL.Host = "witness.example"
				return other.RoundTrip(r)
			}
			return w.RoundTrip(r)
		})
		if !g.log.Ask(&http.Client{Transport: both}, true) {
			t.Fatal("not asked")
		}
		for range g.o.Witnesses {
			g.entries(1)
			g.log.Answered(<-g.log.Answers())
		}
		g.o.Files = stream
		g.open()
		if g.log.Broken() != "" || g.log.Name() != testLog || g.log.Size() != 1 {
			t.Errorf("log %s of %d records: %s", g.log.Name(), g.log.Size(), g.log.Broken())
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBadWitness: a witness that misbehaves is reported and asked again, with back-off. It changes nothing.
func TestBadWitness(t *testing.T) {
	text := func(status int, text string) func(*http.Response) *http.Response {
		return func(*http.Response) *http.Response {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text))}
		}
	}
	for _, test := range []struct {
		name   string
		answer func(*http.Response) *http.Response
		want   string
	}{
		{"an error", text(503, ""), "it answers with status 503"},
		{"a redirect", text(302, ""), "it answers with status 302"},
		{"an unknown log", text(404, ""), "robotsgate audit --public-key prints"},
		{"ahead of the log", text(409, "1000\n"), "it has cosigned 1000 records of this log, which has 1"},
		{"without this log's size", text(409, "0\n"), "what a proof from there needs is lost"},
		{"a size that is none", text(409, "-1\n"), "409 without a size"},
		{"nothing", text(200, ""), "no signature by its key"},
		{"no signature", text(200, "hello\n"), "no signature by its key"},
		{"a signature of another key", text(200, "— witness.example AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), "no signature by its key"},
		{"an endless answer", func(*http.Response) *http.Response {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(io.LimitReader(zeros{}, 1<<40))}
		}, "no signature by its key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWitness(t)
				g := withWitness(t, dir, w)
				w.answer = test.answer
				g.entries(1)
				g.checkpoint(false)
				g.ask(w, false)
				if got := g.log.Witnesses()[0].Error; !strings.Contains(got, test.want) || got == "" {
					t.Errorf("error %q, want %q", got, test.want)
				}
				time.Sleep(askInterval) // fake clock
				g.ask(w, false)
				if w.asked != 1 {
					t.Errorf("asked again after %v", askInterval)
				}
				time.Sleep(askInterval) // fake clock
				w.answer = nil
				g.ask(w, false) // 409: it had cosigned, and its answer was lost
				g.ask(w, false)
				if s := g.log.Witnesses()[0]; s.Error != "" || s.Size != 1 || s.Failures != 1 {
					t.Errorf("after its repair: %+v", s)
				}
				if v := verifyWitnessed(t, dir, w); v.Faulty > 0 {
					t.Errorf("faults %q", v.Faults)
				}
			})
		})
	}
}

// zeros reads zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestEmptyRoot: a cosignature of a tree that the log does not have, with a root of zeros, does not count.
func TestEmptyRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWitness(t), t.TempDir()
		g := start(t, dir)
		g.entries(6)
		g.checkpoint(false)
		time.Sleep(2 * maxUncosigned) // fake clock
		g.entries(2)
		signer, err := NewSigner(testLog, newKey(1))
		if err != nil {
			t.Fatal(err)
		}
		text := torchwood.Checkpoint{Origin: testLog, Tree: tlog.Tree{N: 7}}.String()
		signed, err := note.Sign(&note.Note{Text: text}, signer, w.signer)
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(Line{Checkpoint: string(signed), Time: time.Now(), Gate: "gate-a"})
		if err != nil {
			t.Fatal(err)
		}
		g.write(append(line, '\n'))
		if v := verifyWitnessed(t, dir, w); !strings.Contains(fmt.Sprint(v.Faults), "has cosigned 0 records") {
			t.Errorf("faults %q", v.Faults)
		}
	})
}
