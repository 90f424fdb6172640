package evidence

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"robotsgate/internal/wholefile"
)

// The files in data_dir that belong to the log of the gate that owns the folder.
const (
	KeyFile        = "audit-key.pem"    // the key, if the configuration names none
	CheckpointFile = "audit-checkpoint" // the last note, and a line with the state; see [Note]
)

const (
	// maxResumed is how much younger than the last checkpoint the records of a kill can be.
	maxResumed = 2 * time.Second
	// maxWaited is how much older: while a checkpoint is made, on a slow disk, records wait.
	maxWaited = 5 * time.Second
)

// A state is what a log goes on from.
type state struct {
	Tree *Tree     `json:"tree"`
	Time time.Time `json:"time"` // of the checkpoint
	End  bool      `json:"end"`  // the gate has ended: it has written nothing since
	Path string    `json:"path"` // of the log
}

// mayHaveWritten reports whether the gate may have written a record behind the checkpoint, at this time.
func (s *state) mayHaveWritten(at time.Time) bool {
	return !s.End && !s.Time.IsZero() && (&interval{at, at}).within(maxResumed, s.Time)
}

// save keeps a checkpoint and the state to go on from it, in one step. When it returns, the disk has both.
func (s *state) save(dir, note string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, CheckpointFile), append([]byte(note), append(text, '\n')...))
}

// Note returns the note in the text of a CheckpointFile. A note alone is returned as it is.
func Note(text string) string {
	if note, _, ok := strings.Cut(text, "\n{"); ok {
		return note + "\n"
	}
	return text
}

// loadState returns the checkpoint that is kept, and its state. Each is empty if there is none.
func loadState(dir string) (note string, s state, err error) {
	text, err := readFile(filepath.Join(dir, CheckpointFile))
	if err != nil {
		return "", state{}, err
	}
	note = Note(string(text))
	if json.Unmarshal(text[len(note):], &s) != nil || s.Tree == nil || !s.Tree.valid() {
		s = state{} // the log itself is read
	}
	return note, s, nil
}

// readFile returns the contents of a file that the gate has written, nil if there is no file.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
