package bundle

import (
	"archive/zip"
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/audit"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
	"robotsgate/internal/keyfile"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const robotsText = "User-agent: *\nDisallow: /private/\n"

// kept is the evidence of a gate.
type kept struct {
	config  []byte
	history map[string][]snapshot.Answer // by origin
	bodies  map[string]string
}

func (k *kept) Configuration(digest string) ([]byte, error) {
	if digest != snapshot.Digest(string(k.config)) {
		return nil, fs.ErrNotExist
	}
	return k.config, nil
}

func (k *kept) History(origin string) ([]snapshot.Answer, error) { return k.history[origin], nil }
func (k *kept) TDMRepHistory(string) ([]snapshot.Answer, error)  { return nil, nil }
func (k *kept) Body(digest string) (string, error) {
	body, ok := k.bodies[digest]
	if !ok {
		return "", fs.ErrNotExist
	}
	return body, nil
}

var parse = datadir.Settings

// newKept returns evidence about sites that have all served robotsText since noon.
func newKept(t testing.TB, sites int) *kept {
	text, err := gate.DefaultConfig().Effective()
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{config: text, history: map[string][]snapshot.Answer{}, bodies: map[string]string{snapshot.Digest(robotsText): robotsText}}
	for i := range sites {
		s := answered(noon)
		s.Fetched = noon.Add(30 * 24 * time.Hour)
		k.history[origin(i)] = []snapshot.Answer{{From: noon, Snapshot: s}}
	}
	return k
}

func origin(i int) string { return fmt.Sprintf("http://site%d.example", i) }

func answered(at time.Time) *snapshot.Snapshot {
	return &snapshot.Snapshot{Status: 200, SHA256: snapshot.Digest(robotsText), Fetched: at, Lifetime: -1}
}

// entry returns the line of an entry of a request for a path, without its index.
func (k *kept) entry(t testing.TB, c *policy.Config, n int, origin, path string, at time.Time) []byte {
	target, err := canonical.ParseURL(origin + path)
	if err != nil {
		t.Fatal(err)
	}
	rules := robotstxt.Parse([]byte(robotsText), 0)
	d, ok := c.Replay(policy.PastRequest{
		Target: target, Crawler: c.Crawlers.Default, Tokens: []string{"NewsBot"}, Asked: at, Judged: at, Answer: answered(noon), Good: answered(noon),
		Rules: func(string) *robotstxt.File { return rules },
	})
	if !ok {
		t.Fatal("it can't be decided")
	}
	r := audit.Entry{
		Time: at, ID: fmt.Sprintf("ID%024d", n), Crawler: c.Crawlers.Default.Name, Client: "192.0.2.7", Method: "GET", Origin: target.Origin(), Path: target.Path,
		Config: snapshot.Digest(string(k.config)), Gate: "GATE", Status: 200,
	}
	if !d.Allow {
		r.Status = 403
	}
	r.Decide(&d)
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}

// logWriter makes the log of a gate.
type logWriter struct {
	bytes.Buffer
	tree   *evidence.Tree
	name   string
	signer *evidence.Signer
}

func newLog(t testing.TB, name string) *logWriter {
	key := keyfile.New(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	signer, err := evidence.NewSigner(name, key)
	if err != nil {
		t.Fatal(err)
	}
	return &logWriter{tree: &evidence.Tree{}, name: name, signer: signer}
}

// checkpoint adds the line of a checkpoint, cosigned by witnesses.
func (w *logWriter) checkpoint(t testing.TB, first bool, witnesses ...note.Signer) {
	c := torchwood.Checkpoint{Origin: w.name, Tree: tlog.Tree{N: w.tree.Size, Hash: w.tree.Root()}}
	text, err := note.Sign(&note.Note{Text: c.String()}, append([]note.Signer{w.signer}, witnesses...)...)
	if err != nil {
		t.Fatal(err)
	}
	line := evidence.Line{Checkpoint: string(text), Time: noon.Add(time.Minute), Gate: "GATE"}
	if first {
		line.Edge = w.tree.Clone().Hashes
	}
	w.Write(line.AppendTo(nil))
}

func (w *logWriter) entry(line []byte) {
	line = evidence.AppendEntry(nil, line, 0, w.tree.Size)
	w.tree.Append(tlog.RecordHash(bytes.TrimSuffix(line, []byte("\n"))))
	w.Write(line)
}

// witness returns a witness with a name.
func witness(t testing.TB, name string) *torchwood.CosignatureSigner {
	s, err := torchwood.NewCosignatureSigner(name, ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name[:1]), ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logOf returns a log with n entries, some of which are denied, as its gate wrote it.
func (k *kept) logOf(t testing.TB, n, sites int, end ...note.Signer) *logWriter {
	c, err := parse(k.config)
	if err != nil {
		t.Fatal(err)
	}
	w := newLog(t, "gate.example")
	w.checkpoint(t, true)
	for i := range n {
		path := fmt.Sprintf("/page/%d", i)
		if i%5 == 0 {
			path = fmt.Sprintf("/private/%d", i)
		}
		w.entry(k.entry(t, c, i, origin(i%sites), path, noon.Add(time.Minute+time.Duration(i)*time.Second)))
		if i%100 == 99 {
			w.checkpoint(t, false)
		}
	}
	w.checkpoint(t, false, end...)
	return w
}

// collect returns a Collector that has taken a log, and the reports of the verifier.
func collect(t testing.TB, filter *audit.Filter, keys *evidence.Keys, logs ...[]byte) (*Collector, []evidence.Report) {
	c, err := NewCollector(filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	v := evidence.NewVerifier(evidence.VerifyOptions{Keys: keys, Leaf: c.Leaf, Node: c.Node})
	for i, text := range logs {
		number := 0
		for line := range bytes.Lines(text) {
			number++
			line = bytes.TrimSuffix(line, []byte("\n"))
			v.Line(fmt.Sprintf("log%d", i), evidence.Text{Number: number, Text: line})
			if err := c.Line(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if v.End(); v.Faulty > 0 {
		t.Fatalf("the log has faults: %s", strings.Join(v.Faults, "\n"))
	}
	return c, v.Logs
}

func (w *logWriter) keys(t testing.TB, witnesses ...string) *evidence.Keys {
	keys, err := evidence.ParseKeys([]string{w.signer.Key()}, witnesses)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// bundle returns the bundle of a log.
func (k *kept) bundle(t testing.TB, w *logWriter, filter *audit.Filter, witnesses ...string) ([]byte, *Made) {
	keys := w.keys(t, witnesses...)
	c, logs := collect(t, filter, keys, w.Bytes())
	o := options(k, logs, keys, "What we did")
	o.KeyTexts = []string{w.signer.Key()}
	return write(t, c, o)
}

func write(t testing.TB, c *Collector, o Options) ([]byte, *Made) {
	t.Helper()
	var out bytes.Buffer
	m, err := c.Write(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), m
}

// members returns the contents of a zip file.
func members(t testing.TB, bundle []byte) (names []string, contents map[string]string) {
	z, err := zip.NewReader(bytes.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		t.Fatal(err)
	}
	contents = map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, contents[f.Name] = append(names, f.Name), string(text)
	}
	return names, contents
}

// signed returns a checkpoint of a tree with the root of this log and another size.
func (w *logWriter) signed(t testing.TB, size int64) string {
	c := torchwood.Checkpoint{Origin: w.name, Tree: tlog.Tree{N: size, Hash: w.tree.Root()}}
	text, err := note.Sign(&note.Note{Text: c.String()}, w.signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
