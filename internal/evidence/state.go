package evidence

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"robotsgate/internal/wholefile"
)

// The files in data_dir that belong to the log of the gate that owns the folder.
const (
	KeyFile        = "audit-key.pem"    // the key, if the configuration names none
	CheckpointFile = "audit-checkpoint" // the last note, and nothing else
	edgeFile       = "audit-edge"       // what is needed to go on behind it
)

// A state is what a log goes on from.
type state struct {
	Log       string         `json:"log"`
	Tree      *Tree          `json:"tree"`
	Witnesses []witnessState `json:"witnesses,omitempty"`
}

// A witnessState is how the log has grown since a witness has cosigned it last.
type witnessState struct {
	Key      string `json:"key"`
	Cosigned growth `json:"cosigned"`
	// Asked is the same for what the witness was asked for since, the newest last. It may have cosigned any of it: an
	// answer can be lost, or come after the end of the gate.
	Asked []growth `json:"asked,omitempty"`
}

// saveState keeps a checkpoint and the state to go on from it, with the state for the checkpoint before: a sudden end may
// come between the two files. When it returns, the disk has both.
func saveState(dir, note string, before, now json.RawMessage) error {
	states := []json.RawMessage{now}
	if before != nil {
		states = append(states, before)
	}
	text, err := json.Marshal(states)
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(dir, edgeFile), append(text, '\n')); err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, CheckpointFile), []byte(note))
}

// loadState returns the checkpoint that is kept, and the states. Each is empty if there is none.
func loadState(dir string) (note string, states []state, err error) {
	text, err := readFile(filepath.Join(dir, CheckpointFile))
	if err != nil {
		return "", nil, err
	}
	edges, err := readFile(filepath.Join(dir, edgeFile))
	if err != nil {
		return "", nil, err
	}
	if json.Unmarshal(edges, &states) != nil {
		states = nil // the log itself is read
	}
	return string(text), slices.DeleteFunc(states, func(s state) bool { return s.Tree == nil || s.Tree.From != 0 || !s.Tree.valid() }), nil
}

// readFile returns the contents of a file that the gate has written, nil if there is no file.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
