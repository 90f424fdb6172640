package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	"robotsgate/internal/wholefile"
)

// EndedFile is the file in data_dir with the last checkpoints of gates that do not own the folder, as checkpoint
// lines. Of several lines of one log the last counts.
const EndedFile = "audit-ended"

const (
	// endedInterval is the time between two checkpoints that a running gate adds.
	endedInterval = 10 * time.Second
	// maxEnded is the size at which superseded and old lines are removed, in bytes.
	maxEnded = 256 << 10
)

// keepEnded adds a checkpoint to the list, at the end of the gate, and before it every 10 s.
func (l *Log) keepEnded(text string, end bool) error {
	if l.tree.Size == 0 || !end && time.Since(l.ended) < endedInterval {
		return nil
	}
	path := filepath.Join(l.o.Dir, EndedFile)
	if info, err := os.Stat(path); err == nil && info.Size() > maxEnded {
		if err := compactEnded(path, l.o.Keep); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	line := Line{Checkpoint: text, Time: time.Now().UTC(), Gate: l.o.Gate, End: end}
	if _, err := f.Write(line.AppendTo(nil)); err != nil { // one write, so that gates don't mix their lines
		return err
	}
	l.ended = time.Now()
	return f.Sync()
}

// Ended returns the last checkpoint of each log in the list of a folder.
func Ended(dir string) ([]Line, error) {
	text, err := readFile(filepath.Join(dir, EndedFile))
	return lastOf(text), err
}

func lastOf(text []byte) (all []Line) {
	places := map[string]int{}
	for line := range bytes.Lines(text) {
		l, ok := parseLine(line)
		if !ok {
			continue
		}
		name := Origin(l.Checkpoint)
		if i, known := places[name]; known {
			all[i] = *l
			continue
		}
		places[name] = len(all)
		all = append(all, *l)
	}
	return all
}

// compactEnded removes lines that are superseded or older than keep.
func compactEnded(path string, keep time.Duration) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept []byte
	for _, l := range lastOf(text) {
		if time.Since(l.Time) < keep {
			kept = l.AppendTo(kept)
		}
	}
	return wholefile.Write(path, kept)
}
