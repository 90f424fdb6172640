package gate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"

	"robotsgate/internal/field"
	"robotsgate/internal/wholefile"
)

// idFile is the file in data_dir with the id of the gate that owns the folder.
const idFile = "gate-id"

// gateID is the form of an id: of 16 characters or more, no two random ones are the same.
var gateID = regexp.MustCompile(`\A[0-9a-z]{16,64}\n?\z`)

// ReadID returns the id of the gate that owns a data_dir.
func ReadID(dir string) (string, error) {
	file := filepath.Join(dir, idFile)
	text, err := field.ReadFile(file)
	if err != nil {
		return "", err
	}
	if !gateID.Match(text) {
		return "", fmt.Errorf("%s holds no id of a gate", file)
	}
	return strings.TrimSpace(string(text)), nil
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
