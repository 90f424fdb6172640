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

// folders is how many there are, so that with a million origins none has more than some thousand files.
const folders = 256

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

// encode returns the contents of a file.
func encode(line any, body []byte) ([]byte, error) {
	data, err := json.Marshal(line)
	return append(append(data, '\n'), body...), err
}

// read decodes the first line of a file, and returns what follows it.
func read(path string, line any) (body []byte, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	first, body, whole := bytes.Cut(data, []byte("\n"))
	if !whole {
		return nil, fmt.Errorf("%s: its first line has no end", path)
	}
	if err := json.Unmarshal(first, line); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return body, nil
}

// A name has the parts of a file's name. The file of a set is named by its origin, the kind of the file there and a hash
// of the asker:
//
//	example.com_https_443_robots_0123456789abcdef
//
// That of an answer that was superseded also has when the answer began, and what it was, so that it has one name
// however often it is written. In a hash of 64 bits there may be two askers: the first line of the file says which.
type name struct {
	folder int
	origin string // host_scheme_port
	tdmrep bool
	asker  string // a hash
	began  string // and what it was; empty: a set
}

func nameOf(key string) name {
	scope := snapshot.ParseKey(key)
	folder, origin := place(scope.Origin)
	return name{folder: folder, origin: origin, tdmrep: scope.TDMRep, asker: hash(scope.Asker)}
}

// current is the name of the file of the set.
func (n name) current() string {
	kind := "robots"
	if n.tdmrep {
		kind = "tdmrep"
	}
	return n.origin + "_" + kind + "_" + n.asker
}

// past is that of the file of an answer in the set.
func (n name) past(a snapshot.Answer) string {
	return n.current() + "_" + a.From.UTC().Format("20060102T150405.000000000Z") + "_" + what(a.Snapshot)
}

// what tells answers of one time apart.
func what(s *snapshot.Snapshot) string {
	if s.SHA256 == "" {
		return fmt.Sprint(s.Status)
	}
	return escape(s.SHA256[:min(16, len(s.SHA256))])
}

// parse returns the parts of the name of a file. ok is false if it is none of a snapshot.
func parse(folder int, file string) (n name, ok bool) {
	parts := strings.Split(file, "_")
	if len(parts) != 5 && len(parts) != 7 || strings.HasPrefix(file, ".") {
		return name{}, false
	}
	n = name{folder: folder, origin: strings.Join(parts[:3], "_"), tdmrep: parts[3] == "tdmrep", asker: parts[4]}
	n.began = strings.Join(parts[5:], "_")
	return n, n.tdmrep || parts[3] == "robots"
}

// originOf returns an origin from its host and the name of a file.
func originOf(host, file string) string {
	parts := strings.Split(file, "_")
	scheme, port := parts[1], parts[2]
	if port == usualPort[scheme] {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}

// place returns the folder of an origin, and how the names of its files begin.
func place(origin string) (folder int, begins string) {
	scheme, authority, _ := strings.Cut(origin, "://")
	host, port := canonical.SplitPort(authority)
	folder, begins = hostPlace(host)
	return folder, begins + escape(scheme) + "_" + escape(cmp.Or(port, usualPort[scheme]))
}

// usualPort is that of an origin without one, by scheme.
var usualPort = map[string]string{"http": "80", "https": "443"}

// hostPlace is place for all origins of a host.
func hostPlace(host string) (folder int, begins string) {
	const longest = 120 // of the 255 bytes that a file system allows
	begins = escape(host)
	if len(begins) > longest {
		begins = begins[:longest] + "~" + hash(host)
	}
	return int(sha256.Sum256([]byte(host))[0]), begins + "_"
}

// escape returns text as it may be in a file's name: an origin's host is chosen by clients. A dot at the beginning would
// hide the file.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// path returns the path of a file.
func (x *Reader) path(folder int, file string) string {
	return filepath.Join(x.dir, fmt.Sprintf("%02x", folder), file)
}

// load returns the set under a key. A file that can't be read, or with another body than it says, is as if it were not
// there.
func (x *Reader) load(key string) (set setLine, ok bool) {
	n := nameOf(key)
	path := x.path(n.folder, n.current())
	body, err := read(path, &set)
	if err == nil && set.Good != nil && snapshot.Digest(body) != set.Good.SHA256 {
		err = fmt.Errorf("%s: %w", path, snapshot.ErrChanged)
	}
	if err != nil || set.Key != key || set.Empty() {
		x.unreadable(path, err)
		return setLine{}, false
	}
	if set.Last == nil {
		set.Last = set.Good // as for most origins, and so kept once
	}
	set.Body = body
	return set, true
}

// unreadable names a file that can't be read, once.
func (x *Reader) unreadable(path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, named := x.named.LoadOrStore(path, true); !named {
		x.warn(err)
	}
}
