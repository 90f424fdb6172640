package bundle

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
	"robotsgate/policy/snapshot"
)

// An archive is a bundle that is read. It may come from anyone, so nothing in it is taken at its word. It
// implements replay.Evidence.
type archive struct {
	files   map[string]*zip.File
	answers map[string][]snapshot.Answer // by URL
	work    int64                        // bytes that were read to be parsed
}

// A NoBundleError says that a file is no bundle, or that it is made to harm.
type NoBundleError struct{ why string }

func (e NoBundleError) Error() string { return "no bundle: " + e.why }

func noBundle(format string, args ...any) error {
	return NoBundleError{escape.Printable(fmt.Sprintf(format, args...))}
}

// maxDirectory bounds the directory of a zip file, in bytes: archive/zip keeps all of it in memory.
const maxDirectory = 32 << 20

// open reads the directory of a zip file.
func open(r io.ReaderAt, size int64) (*archive, error) {
	limited := &limitedAt{r: r, left: maxDirectory}
	z, err := zip.NewReader(limited, size)
	if errors.Is(err, errDirectory) {
		return nil, noBundle("the directory of the zip file has more than %d MiB", maxDirectory>>20)
	}
	if err != nil {
		return nil, noBundle("%v", err)
	}
	limited.left = -1
	if len(z.File) > maxMembers {
		return nil, noBundle("more than %d files", maxMembers)
	}
	a := &archive{files: make(map[string]*zip.File, len(z.File))}
	total := uint64(0)
	for _, f := range z.File {
		if err := a.add(f); err != nil {
			return nil, err
		}
		if total += f.UncompressedSize64; total > maxTotal {
			return nil, noBundle("its files have more than %d MiB together", maxTotal>>20)
		}
	}
	if a.files[recordsName] == nil {
		return nil, noBundle("there is no %s in it", recordsName)
	}
	return a, nil
}

func (a *archive) add(f *zip.File) error {
	known := slices.Contains([]string{readmeName, reportName, recordsName, proofsName, answersName}, f.Name) || memberName.MatchString(f.Name)
	switch {
	case !known:
		return noBundle("it has a file %q, which no bundle has", f.Name)
	case a.files[f.Name] != nil:
		return noBundle("it has the file %q twice", f.Name)
	case !f.Mode().IsRegular():
		return noBundle("%q is a link, or no file", f.Name)
	case f.Flags&1 != 0: // archive/zip would read it as it is
		return noBundle("%q is encrypted", f.Name)
	case f.UncompressedSize64 > uint64(limitOf(f.Name)):
		return noBundle("%q has more than %d KiB", f.Name, limitOf(f.Name)>>10)
	}
	a.files[f.Name] = f
	return nil
}

var errDirectory = errors.New("the directory is too long")

// limitedAt fails behind a number of bytes, unless that is negative.
type limitedAt struct {
	r    io.ReaderAt
	left int64
}

func (l *limitedAt) ReadAt(p []byte, at int64) (int, error) {
	if l.left >= 0 {
		if l.left -= int64(len(p)); l.left < 0 {
			l.left = 0
			return 0, errDirectory
		}
	}
	return l.r.ReadAt(p, at)
}

// open opens a member. The error is fs.ErrNotExist if there is none. archive/zip lets it have no other length than the
// directory states.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.files[name]
	if f == nil {
		return nil, fmt.Errorf("%s is not in the bundle: %w", name, fs.ErrNotExist)
	}
	r, err := f.Open()
	if err != nil {
		return nil, noBundle("%s: %v", name, err)
	}
	return &memberReader{r, name}, nil
}

// read returns the contents of a member.
func (a *archive) read(name string) ([]byte, error) {
	r, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// A memberReader reads a member. Its errors are NoBundleErrors.
type memberReader struct {
	io.ReadCloser
	name string
}

func (m *memberReader) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = noBundle("%s: %v", m.name, err)
	}
	return n, err
}

// linesOf returns the lines of a member. An error is the last that it returns.
func linesOf(name string, r io.Reader) iter.Seq2[evidence.Text, error] {
	return func(yield func(evidence.Text, error) bool) {
		for line, err := range evidence.ReadLines(r) {
			switch {
			case line.Long:
				err = noBundle("%s: line %d is too long", name, line.Number)
			case err == nil && len(line.Text) == 0 && !line.Open:
				err = noBundle("%s: line %d is empty", name, line.Number)
			}
			if (err != nil || len(line.Text) > 0) && !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// named returns a member whose name is the digest of its contents.
func (a *archive) named(folder, digest string) ([]byte, error) {
	text, err := a.read(folder + digest)
	if err != nil {
		return nil, err
	}
	if snapshot.Digest(string(text)) != digest {
		return nil, snapshot.ErrChanged
	}
	return text, nil
}

// maxWork bounds the bytes of files that are parsed. A bundle that was made for it could have them parsed again for each
// entry. A configuration takes some 64 times as long as a robots.txt.
const maxWork = 16 << 30

// Configuration returns the text of a configuration.
func (a *archive) Configuration(digest string) ([]byte, error) {
	text, err := a.named(configurationsDir, digest)
	a.work += 64 * int64(len(text))
	return text, err
}

// Body returns a robots.txt or tdmrep.json.
func (a *archive) Body(digest string) (string, error) {
	text, err := a.named(robotsDir, digest)
	a.work += int64(len(text))
	return string(text), err
}

// History returns the answers of an origin to requests for its robots.txt.
func (a *archive) History(origin string) ([]snapshot.Answer, error) {
	return a.answers[origin+robotsPath], nil
}

// TDMRepHistory returns those to requests for its tdmrep.json.
func (a *archive) TDMRepHistory(origin string) ([]snapshot.Answer, error) {
	return a.answers[origin+tdmrepPath], nil
}

const (
	maxAnswerCount = 1 << 18
	maxAnswersOf   = 10_000 // answers about one URL, each of which is compared with each entry of its origin
)

// loadAnswers reads answers.jsonl. Bad is called for each line that is no answer.
func (a *archive) loadAnswers(bad func(at string, err error)) error {
	a.answers = map[string][]snapshot.Answer{}
	r, err := a.open(answersName)
	if err != nil {
		return err
	}
	defer r.Close()
	count := 0
	for line, err := range linesOf(answersName, r) {
		if err != nil {
			return err
		}
		var one answer
		err := json.Unmarshal(line.Text, &one)
		count++
		switch {
		case count > maxAnswerCount || len(a.answers[one.URL]) == maxAnswersOf:
			return noBundle("%s: more than %d answers, or more than %d about one URL", answersName, maxAnswerCount, maxAnswersOf)
		case err != nil:
			bad(fmt.Sprintf("%s:%d", answersName, line.Number), err)
			continue
		}
		a.answers[one.URL] = append(a.answers[one.URL], one.stored())
	}
	for _, all := range a.answers {
		slices.SortStableFunc(all, func(x, y snapshot.Answer) int { return x.From.Compare(y.From) })
	}
	return nil
}

// names returns the names of the members in a folder, sorted.
func (a *archive) names(folder string) (all []string) {
	for name := range a.files {
		if strings.HasPrefix(name, folder) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
