package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"

	"robotsgate/internal/evidence"
	"robotsgate/proxy"
)

// cosigner is a witness that cosigns all that it is sent after half a second, unless it is down.
type cosigner struct {
	signer *torchwood.CosignatureSigner
	down   bool
}

func (w *cosigner) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond) // fake clock
	if w.down {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
	}
	_, checkpoint, _ := strings.Cut(string(body), "\n\n")
	text, _, _ := strings.Cut(checkpoint, "\n\n")
	signed, err := note.Sign(&note.Note{Text: text + "\n"}, w.signer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(signed[len(text)+2:]))}, nil
}

// TestStatus: the state of the log has the last checkpoint, and what each witness has cosigned.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		signer, err := torchwood.NewCosignatureSigner("witness.example", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
		if err != nil {
			t.Fatal(err)
		}
		w := &cosigner{signer: signer}
		l := open(t, Options{
			Config: Config{File: "-", Witnesses: []evidence.Witness{{URL: "https://witness.example/", Key: signer.Verifier().String()}}},
			Client: &http.Client{Transport: w}, Evidence: evidence.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)},
		}, io.Discard, nil)
		end, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		defer l.Close(end)
		write := func(n int) {
			for range n {
				l.Write(&proxy.Record{Method: "GET", Start: time.Now()})
			}
			synctest.Wait()
		}
		if s := l.Status(); s.Name != "log.example" || !strings.HasPrefix(s.Key, "log.example+") || s.Size != 0 || !s.Checkpoint.IsZero() || len(s.Witnesses) != 1 || !s.Witnesses[0].Cosigned.IsZero() {
			t.Errorf("at the start: %+v", s)
		}
		begun := time.Now()
		write(3)
		time.Sleep(29900 * time.Millisecond) // fake clock
		s := l.Status()
		if s.Size != 3 || s.Checkpoint.IsZero() || s.Checkpoint.Sub(begun) > checkpointInterval {
			t.Errorf("after 3 records: %+v", s)
		}
		if got := s.Witnesses[0]; got.Size != 3 || got.Cosigned.IsZero() || got.Cosigned.Sub(begun) > 2*time.Second || got.Error != "" || got.Cosignatures != 1 || got.Failures != 0 {
			t.Errorf("the witness is in the state %+v", got)
		}

		w.down = true
		write(1)
		time.Sleep(checkpointInterval + 200*time.Millisecond) // fake clock: it is covered, and the witness is being asked
		write(4)                                              // which no checkpoint covers yet
		time.Sleep(500 * time.Millisecond)                    // fake clock
		s = l.Status()
		if got := s.Witnesses[0]; s.Size != 4 || got.Size != 3 || got.Error != "it answers with status 503" || got.Failures != 1 {
			t.Errorf("while the witness is down: %+v", s)
		}
	})
}

// TestNoCheckpoint: while data_dir can't be written, the state of the log says why there is no checkpoint. The log says
// when there are checkpoints again.
func TestNoCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	away := dir + "-away"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		logged := new(bytes.Buffer)
		l := open(t, Options{Config: Config{File: "-"}, Evidence: evidence.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}}, io.Discard, logged)
		defer l.Close(t.Context())
		write := func() Status {
			l.Write(&proxy.Record{Method: "GET", Start: time.Now()})
			time.Sleep(5 * checkpointInterval) // fake clock
			synctest.Wait()
			return l.Status()
		}
		if s := write(); s.Error != "" || s.Size != 1 {
			t.Errorf("at first: %+v", s)
		}
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		if s := write(); s.Error == "" || s.Size != 1 || strings.Contains(logged.String(), "again") {
			t.Errorf("without the folder: %+v, %s", s, logged)
		}
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		if s := write(); s.Error != "" || s.Size != 3 || strings.Count(logged.String(), "the audit log gets checkpoints again") != 1 {
			t.Errorf("with the folder: %+v, %s", s, logged)
		}
	})
}
