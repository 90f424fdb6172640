package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// The file of a set is named by its origin, the kind of the file there and a hash of the asker:
//
//	example.com_https_443_robots_0123456789abcdef
//
// That of an answer that was superseded also has when the answer began, and what it was, so that it has one name
// however often it is written. In a hash of 64 bits there may be two askers: the first line of the file says which.
const (
	setParts  = 5 // of the name of a set's file
	pastParts = 7
)

// parts returns how many a file's name has; 0: it is not of a snapshot.
func parts(name string) int {
	if strings.HasPrefix(name, ".") {
		return 0
	}
	return 1 + strings.Count(name, "_")
}

// A setLine is the JSON of a set, the first line of its file. Its Last is left out if it is Good, and its Body follows
// the line.
type setLine struct {
	Key string `json:"key"`
	snapshot.DatedSet
}

// An answerLine is the JSON of a superseded answer. The body follows, if it is that of the last good answer.
type answerLine struct {
	Key string `json:"key"` // of the set
	snapshot.Answer
}

// read decodes the first line of a file, and returns what follows it. It calls warn for a file that can't be read, once.
func (x *Reader) read(path string, line any) (body []byte, ok bool) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	first, body, whole := bytes.Cut(data, []byte("\n"))
	if err == nil && !whole {
		err = errors.New("its first line has no end")
	}
	if err = cmp.Or(err, json.Unmarshal(first, line)); err != nil {
		x.unreadable(path, err)
	}
	return body, err == nil
}

func (x *Reader) unreadable(path string, err error) {
	if _, named := x.named.LoadOrStore(path, true); !named {
		x.warn(fmt.Errorf("%s: %w", path, err))
	}
}

// load returns the set under a key, from its file. A file that can't be read, or with another body than it says, is as
// if it were not there.
func (x *Reader) load(key, path string) (set setLine, ok bool) {
	body, ok := x.read(path, &set)
	if ok && set.Good != nil && snapshot.Digest(body) != set.Good.SHA256 {
		x.unreadable(path, snapshot.ErrChanged)
		ok = false
	}
	if !ok || set.Key != key || set.Empty() {
		return setLine{}, false
	}
	set.Last = cmp.Or(set.Last, set.Good) // as for most origins, and so kept once
	set.Body = body
	return set, true
}

// hostPath returns how the paths of the files of a host begin. It has one of 256 folders, so that with a million
// origins none has more than some thousand files.
func (x *Reader) hostPath(host string) string {
	const longest = 120 // of the 255 bytes that a file system allows
	name := escape(host)
	if len(name) > longest {
		name = name[:longest] + "~" + hash(host)
	}
	return filepath.Join(x.dir, hash(host)[:2], name) + "_"
}

// originPath is hostPath for an origin.
func (x *Reader) originPath(origin string) string {
	scheme, authority, _ := strings.Cut(origin, "://")
	host, port := canonical.SplitPort(authority)
	port = cmp.Or(port, canonical.DefaultPort(scheme))
	return x.hostPath(host) + escape(scheme) + "_" + escape(port) + "_"
}

// setPath returns the path of the file of a set.
func (x *Reader) setPath(key string) string {
	scope := snapshot.ParseKey(key)
	kind := "robots_"
	if scope.TDMRep {
		kind = "tdmrep_"
	}
	return x.originPath(scope.Origin) + kind + hash(scope.Asker)
}

// pastPath returns the path of the file of an answer that a set had.
func pastPath(set string, a snapshot.Answer) string {
	return set + "_" + a.From.UTC().Format("20060102T150405.000000000Z") + "_" + what(a.Snapshot)
}

// what tells answers of one time apart.
func what(s *snapshot.Snapshot) string {
	if s.SHA256 == "" {
		return fmt.Sprint(s.Status)
	}
	return escape(s.SHA256[:min(16, len(s.SHA256))])
}

// escape returns text as it may be in a file's name: an origin's host is chosen by clients. A dot at the beginning would
// hide the file.
func escape(text string) string {
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.' && i > 0:
			b = append(b, c)
		default:
			b = fmt.Appendf(b, "%%%02X", c)
		}
	}
	return string(b)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
