package gate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"robotsgate/internal/wholefile"
)

// idFile is the file in data_dir with the id of the gate that owns the folder.
const idFile = "gate-id"

// maxID bounds an id, in bytes. minID is that of a random one that collides with no other.
const minID, maxID = 16, 64

// ReadID returns the id of the gate that owns a data_dir.
func ReadID(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, idFile))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text := make([]byte, maxID+2)
	n, _ := f.Read(text) // what is missing is no id
	id := strings.TrimSpace(string(text[:n]))
	other := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if len(id) < minID || len(id) > maxID || strings.ContainsFunc(id, other) {
		return "", fmt.Errorf("%s holds no id of a gate", f.Name())
	}
	return id, nil
}

// ownID returns the id of the gate that owns a folder, and makes one at the first start.
func ownID(dir string, log *slog.Logger) string {
	id, err := ReadID(dir)
	if err == nil {
		return id
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	id = newID()
	if err = errors.Join(err, wholefile.Write(filepath.Join(dir, idFile), []byte(id+"\n"))); err != nil {
		log.Warn("this gate has a new id, by which the audit log and the fleet name it", "gate", id, "error", err)
	}
	return id
}

func newID() string { return strings.ToLower(rand.Text()) }
