package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/torchwood"

	"robotsgate/internal/wholefile"
)

// The files in data_dir that belong to the log of the gate that owns the folder.
const (
	KeyFile        = "audit-key.pem"    // the key, if the configuration names none
	CheckpointFile = "audit-checkpoint" // a [State]
)

// A State is what a log goes on from, or is verified from. Its file has the note, and a line of JSON with the rest.
type State struct {
	Note string    `json:"-"` // the last checkpoint
	Tree *Tree     `json:"tree"`
	Time time.Time `json:"time"` // of the checkpoint
	End  bool      `json:"end"`  // the gate has ended: it has written nothing since
	Path string    `json:"path"` // of the file that has its line
	Size int64     `json:"size"` // of that file before the line, in bytes

	checkpoint torchwood.Checkpoint // in the note, after open
}

// ReadState reads a state from a file. Of a file with a note alone it has only the note.
func ReadState(file string) (*State, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &State{Note: string(text)}
	if note, rest, ok := strings.Cut(string(text), "\n{"); ok {
		s.Note = note + "\n"
		if err := json.Unmarshal([]byte("{"+rest), s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return s, nil
}

// Verify checks the note with the key of the log, and that the tree fits it.
func (s *State) Verify(k *Key) (err error) {
	s.checkpoint, err = k.Open(s.Note)
	switch {
	case err != nil:
		return err
	case s.Tree == nil || !s.Tree.valid() || s.Tree.Size != s.checkpoint.N || s.Tree.Root() != s.checkpoint.Hash:
		return errors.New("it lacks the tree of its checkpoint, which " + CheckpointFile + " has")
	}
	return nil
}

// save keeps a state, in one step. When it returns, the disk has it.
func (s *State) save(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, CheckpointFile), append([]byte(s.Note), append(text, '\n')...))
}
