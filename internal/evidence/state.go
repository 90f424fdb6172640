package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// The files in data_dir that belong to the log of the gate that owns the folder.
const (
	KeyFile        = "audit-key.pem"    // the key, if the configuration names none
	CheckpointFile = "audit-checkpoint" // the last note, and nothing else
	edgeFile       = "audit-edge"       // what is needed to go on behind it
)

// A state is what a log goes on from. The two last ones are kept, since a sudden end may come after the edge
// has been written, and before the checkpoint.
type state struct {
	Log       string         `json:"log"`
	Size      int64          `json:"size"`
	Edge      []tlog.Hash    `json:"edge"`
	Witnesses []witnessState `json:"witnesses,omitempty"`
}

// A witnessState is what a witness has cosigned last, and what it was asked for since.
type witnessState struct {
	Key string `json:"key"`
	pointState
	Asked []pointState `json:"asked,omitempty"`
}

// A pointState is a point, as it is kept.
type pointState struct {
	Size  int64       `json:"size"`
	Edge  []tlog.Hash `json:"edge"`
	Since []tlog.Hash `json:"since"`
}

// maxState bounds the two files, in bytes.
const maxState = 1 << 20

// saveState keeps a checkpoint and what is needed to go on behind it. When it returns, the disk has both.
func saveState(dir, note string, last []state) error {
	text, err := json.Marshal(last)
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(dir, edgeFile), append(text, '\n')); err != nil {
		return err
	}
	return replace(filepath.Join(dir, CheckpointFile), []byte(note))
}

// loadState returns the checkpoint that is kept, and the states. Each is empty if there is none.
func loadState(dir string) (note string, last []state, err error) {
	text, err := readFile(filepath.Join(dir, CheckpointFile))
	if err != nil {
		return "", nil, err
	}
	edges, err := readFile(filepath.Join(dir, edgeFile))
	if err != nil {
		return "", nil, err
	}
	_ = json.Unmarshal(edges, &last) // without an edge the log itself is read
	return string(text), last, nil
}

// readFile returns the contents of a small file, nil if there is no file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err == nil && len(text) > maxState {
		err = fmt.Errorf("%s: longer than %d bytes", path, maxState)
	}
	return text, err
}

// replace replaces a file. When it returns, the disk has the new contents.
func replace(path string, text []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every system can
		d.Close()
	}
	return nil
}
