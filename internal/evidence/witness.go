package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/field"
)

const (
	// askInterval is the least time between two questions to a witness. After failures it doubles.
	askInterval = 10 * time.Second
	maxInterval = 10 * time.Minute
	// askTimeout bounds one question.
	askTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 10
)

// A Witness cosigns checkpoints (c2sp.org/tlog-witness).
type Witness struct {
	URL string `yaml:"url" doc:"the submission prefix of a witness, such as https://witness.example/"`
	Key string `yaml:"key" doc:"a verifier key, such as witness.example+5b8b1a2c+BA..."`
}

// CheckWitnesses reports mistakes in a list of witnesses.
func CheckWitnesses(all []Witness, m *field.Mistakes, list string) {
	names := map[string]bool{}
	for i, w := range all {
		m := m.In(fmt.Sprintf("%s[%d]", list, i))
		u, err := url.Parse(w.URL)
		m.Require(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "", "url",
			"expected the submission prefix of a witness, such as https://witness.example/, got %q", field.Cut(w.URL))
		m.Require(err != nil || u.User == nil, "url", "a witness takes no login: remove USER:PASSWORD@ from its URL")
		_, err = ParseKeys(nil, []string{w.Key})
		m.Refuse("key", err)
		name, _, _ := strings.Cut(w.Key, "+")
		m.Require(err != nil || !names[name], "key", "%s is there twice: the metrics and the status page tell witnesses apart by their names", name)
		names[name] = true
	}
}

// A WitnessStatus is the state of a witness.
type WitnessStatus struct {
	Name         string    `json:"name"`
	URL          string    `json:"url"`
	Size         int64     `json:"size"`              // of the last checkpoint that it has cosigned
	Cosigned     time.Time `json:"cosigned,omitzero"` // when that was; zero: not since the start
	Error        string    `json:"error,omitempty"`   // why it did not cosign the last checkpoint that it was asked for
	Cosignatures int64     `json:"cosignatures"`      // since the start
	Failures     int64     `json:"failures"`          // since the start
}

// witness is what a Log knows of a witness.
type witness struct {
	witnessState
	url      string
	verifier *torchwood.CosignatureVerifier
	status   WitnessStatus
	busy     bool
	last     time.Time // when it was asked last
	pause    time.Duration
}

// maxAsked bounds the trees of which it is not known whether a witness has cosigned them.
const maxAsked = 4

// An Answer is the answer of a witness to one question.
type Answer struct {
	witness    int
	asked      int64  // the size that it was asked for
	note       string // of that size
	signatures string // lines of a note
	size       int64  // that it knows, if that is another than expected
	err        error
}

var errOtherSize = errors.New("it has cosigned another size than this log knows of")

func (l *Log) openWitnesses(kept state, tail []tlog.Hash) error {
	for _, o := range l.o.Witnesses {
		v, err := torchwood.NewCosignatureVerifier(o.Key)
		if err != nil {
			return fmt.Errorf("the key of witness %s: %w", o.URL, err)
		}
		w := &witness{url: o.URL, verifier: v, pause: askInterval}
		w.witnessState = witnessState{Key: o.Key, Cosigned: growth{&Tree{}, l.tree.Clone()}}
		for _, s := range kept.Witnesses {
			if s.Key == o.Key && s.Cosigned.valid(kept.Tree.Size) {
				s.Asked = slices.DeleteFunc(s.Asked, func(g growth) bool { return !g.valid(kept.Tree.Size) })
				w.witnessState = s
				for _, leaf := range tail {
					w.append(leaf)
				}
			}
		}
		w.status = WitnessStatus{Name: v.Name(), URL: o.URL, Size: w.Cosigned.Tree.Size}
		l.witnesses = append(l.witnesses, w)
	}
	l.answers = make(chan Answer, len(l.witnesses))
	return nil
}

// append adds an entry to what the witness has not cosigned.
func (w *witness) append(leaf tlog.Hash) {
	w.Cosigned.Since.Append(leaf)
	for _, g := range w.Asked {
		g.Since.Append(leaf)
	}
}

// hasCosigned takes a size that the witness has cosigned. It reports whether that is one it was asked for.
func (w *witness) hasCosigned(size int64) bool {
	i := slices.IndexFunc(w.Asked, func(g growth) bool { return g.Tree.Size == size })
	if i < 0 {
		return false
	}
	w.Cosigned, w.Asked = w.Asked[i], w.Asked[i+1:]
	return true
}

// Ask asks the witnesses for the last checkpoint, those whose turn it is, or with now all that have not cosigned it.
// It does not wait; their answers come from Answers. It reports whether one is being asked.
func (l *Log) Ask(client *http.Client, now bool) (asking bool) {
	if !l.Covered() {
		return false
	}
	for i, w := range l.witnesses {
		if w.busy {
			asking = true
			continue
		}
		// At the start of a gate it is not known whether the last cosignature has reached the log.
		done := w.Cosigned.Tree.Size == l.covered && w.status.Error == "" && !w.status.Cosigned.IsZero()
		if done || l.covered == 0 || !now && time.Since(w.last) < w.pause {
			continue
		}
		proof, err := w.Cosigned.prove()
		if err != nil {
			continue // openWitnesses has refused such a state
		}
		w.busy, w.last, asking = true, time.Now(), true
		if n := len(w.Asked); n == 0 || w.Asked[n-1].Tree.Size != l.covered {
			if n == maxAsked {
				w.Asked = slices.Delete(w.Asked, 1, 2) // a witness that was stopped begins with the oldest question
			}
			w.Asked = append(w.Asked, growth{l.tree.Clone(), &Tree{From: l.covered, Size: l.covered}})
		}
		l.saveWitnesses() // before it is asked, so that a proof can be made whatever it has cosigned
		go func(old int64, a Answer) {
			a.signatures, a.size, a.err = submit(client, w.url, w.verifier, old, proof, a.note)
			l.answers <- a
		}(w.Cosigned.Tree.Size, Answer{witness: i, asked: l.covered, note: l.note})
	}
	return asking
}

// Answers receives the answers of witnesses, each for Answered.
func (l *Log) Answers() <-chan Answer { return l.answers }

// Answered takes an answer. If it has cosignatures, it returns the line of the checkpoint with them.
func (l *Log) Answered(a Answer) []byte {
	w := l.witnesses[a.witness]
	w.busy = false
	if errors.Is(a.err, errOtherSize) && w.hasCosigned(a.size) {
		w.last = time.Time{} // it is asked again at once
		return nil
	}
	if a.err != nil {
		l.failed(w, a)
		return nil
	}
	w.hasCosigned(a.asked)
	w.pause = askInterval
	if w.status.Error != "" {
		l.o.Log.Info("the witness cosigns the audit log again", "witness", w.status.Name)
	}
	w.status.Size, w.status.Cosigned, w.status.Error = a.asked, time.Now(), ""
	w.status.Cosignatures++
	l.saveWitnesses()
	if l.finished && a.asked < l.covered {
		w.last = time.Time{} // it is asked for the last checkpoint at once
	}
	if l.cosigned == "" || !strings.HasPrefix(l.cosigned, a.note) {
		l.cosigned = a.note
	}
	l.cosigned += a.signatures
	line := Line{Checkpoint: l.cosigned, Time: time.Now().UTC(), Gate: l.o.Gate, End: l.finished}
	return line.AppendTo(nil)
}

// saveWitnesses keeps what is known of the witnesses, unless the next checkpoint is about to.
func (l *Log) saveWitnesses() {
	if l.o.Ends || !l.Covered() {
		return
	}
	if err := l.keep(l.note); err != nil {
		l.o.Log.Warn("what witnesses have cosigned can't be kept in data_dir; check its space and permissions", "error", err)
	}
}

// failed notes that a witness did not cosign.
func (l *Log) failed(w *witness, a Answer) {
	w.pause = min(2*w.pause, maxInterval)
	w.status.Failures++
	text := a.err.Error()
	if errors.Is(a.err, errOtherSize) {
		switch {
		case a.size > l.tree.Size:
			text = fmt.Sprintf("it has cosigned %d records of this log, which has %d: records were lost, or another gate uses this name", a.size, l.tree.Size)
		case a.size < w.Cosigned.Tree.Size:
			text = fmt.Sprintf("it has cosigned %d records of this log, and knows of %d now: it has lost what it has seen, and needs a new key", w.Cosigned.Tree.Size, a.size)
		default:
			text = fmt.Sprintf("it has cosigned %d records of this log, and what a proof from there needs is lost: it can't cosign this log any more", a.size)
		}
	}
	if text != w.status.Error {
		l.o.Log.Warn("a witness has not cosigned the audit log", "witness", w.status.Name, "url", w.url, "error", text,
			"advice", "check that the gate reaches the witness, and that the witness knows the gate's key; the gate asks it again by itself")
	}
	w.status.Error = text
}

// Witnesses returns the states of the witnesses.
func (l *Log) Witnesses() (all []WitnessStatus) {
	for _, w := range l.witnesses {
		all = append(all, w.status)
	}
	return all
}

// submit asks a witness to cosign a checkpoint, with the proof that the log has grown to it from the size old. It
// returns the lines of its signatures. With errOtherSize it returns the size that the witness knows.
func submit(client *http.Client, prefix string, v *torchwood.CosignatureVerifier, old int64, proof []tlog.Hash, text string) (signatures string, size int64, err error) {
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	for _, hash := range proof {
		fmt.Fprintf(&body, "%s\n", hash)
	}
	fmt.Fprintf(&body, "\n%s", text)
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(prefix, "/")+"/add-checkpoint", &body)
	if err != nil {
		return "", 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", 0, err
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusConflict:
		size, err := strconv.ParseInt(strings.TrimSpace(string(answer)), 10, 64)
		if err != nil || size < 0 {
			return "", 0, errors.New("it answers 409 without a size")
		}
		return "", size, errOtherSize
	case http.StatusNotFound:
		return "", 0, errors.New("it does not know this log: give its operator the log's verifier key, which robotsgate audit --public-key prints")
	default:
		return "", 0, fmt.Errorf("it answers with status %d", response.StatusCode)
	}
	n, err := note.Open([]byte(text+string(answer)), note.VerifierList(v))
	if err != nil {
		return "", 0, fmt.Errorf("its answer has no signature by its key: %w", err)
	}
	for _, s := range n.Sigs { // the verified ones, of its key only
		signatures += fmt.Sprintf("— %s %s\n", s.Name, s.Base64)
	}
	return signatures, 0, nil
}
