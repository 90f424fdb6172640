// Package audit writes down every request: one JSON object a line, with what
// was decided and on which evidence.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// maxFile is the size at which a file is rotated, in MiB.
const maxFile = 100

// A Record is one request. Members that do not apply are left out.
type Record struct {
	Time     time.Time     `json:"time"`
	ID       string        `json:"id"`
	Crawler  string        `json:"crawler,omitempty"`
	Client   string        `json:"client,omitempty"`
	Method   string        `json:"method"`
	URL      string        `json:"url"`
	Tunnel   bool          `json:"tunnel,omitempty"`
	Decision string        `json:"decision,omitempty"` // allow or deny; none was made without
	Enforced *bool         `json:"enforced,omitempty"` // false: denied, but let through
	Reason   policy.Reason `json:"reason,omitempty"`
	Note     string        `json:"note,omitempty"` // an override's reason
	Rule     string        `json:"rule,omitempty"`
	Line     int           `json:"line,omitempty"`
	Group    string        `json:"group,omitempty"`
	Token    string        `json:"token,omitempty"`
	Robots   *Robots       `json:"robots,omitempty"`
	Tags     []string      `json:"tags,omitempty"` // that bind the crawler
	Status   int           `json:"status"`         // 0: the client left before an answer
	Bytes    int64         `json:"bytes"`          // of the response's body
	Duration float64       `json:"duration"`       // seconds
	Error    string        `json:"error,omitempty"`
}

// Robots is the evidence of a decision.
type Robots struct {
	URL    string       `json:"url"`
	Status int          `json:"status,omitempty"`
	State  policy.State `json:"state"`
	Age    int64        `json:"age"` // seconds
	SHA256 string       `json:"sha256,omitempty"`
}

// A Log writes records. A nil Log writes nothing.
type Log struct {
	redact   bool
	keepNone bool // of the files that are full
	log      *slog.Logger

	out   io.Writer
	queue *queue
	torn  bool      // the last line was not written whole; the queue's
	said  time.Time // the queue's

	failed int // records lost since then

	lost   atomic.Int64 // records, since the start
	jammed atomic.Int64 // when it was last said that the queue is full, in Unix seconds
}

// Options say where records go, and what of them.
type Options struct {
	File        string // is rotated at 100 MiB; "-" is standard output
	Keep        int    // rotated files
	RedactQuery bool   // query values become *
}

// New returns a log that appends to a file, or writes to stdout.
func New(o Options, stdout io.Writer, log *slog.Logger) *Log {
	l := &Log{redact: o.RedactQuery, log: log, out: stdout}
	if o.File != "-" {
		l.out = &lumberjack.Logger{Filename: o.File, MaxSize: maxFile, MaxBackups: o.Keep}
		l.keepNone = o.Keep == 0
	}
	l.queue = newQueue(l.write)
	return l
}

// Check reports whether the log can be written.
func (l *Log) Check() error {
	if err := l.makeRoom(0); err != nil {
		return err
	}
	_, err := l.out.Write(nil)
	return err
}

// makeRoom removes a file that is full where no old one is kept. Lumberjack
// can't be told so: 0 means all of them to it.
func (l *Log) makeRoom(n int) error {
	file, ok := l.out.(*lumberjack.Logger)
	if !ok || !l.keepNone {
		return nil
	}
	info, err := os.Stat(file.Filename)
	if err != nil || info.Size()+int64(n) < maxFile<<20 {
		return nil // lumberjack makes what is missing
	}
	return errors.Join(file.Close(), os.Remove(file.Filename))
}

// Write writes down one request, soon. It never waits.
func (l *Log) Write(x *proxy.Exchange) {
	if l == nil {
		return
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // a URL's & can be searched for
	if err := enc.Encode(l.record(x)); err != nil {
		l.log.Error("a request can't be written down; please report it", "id", x.ID, "error", err)
		return
	}
	if lost := l.queue.add(line.Bytes()); lost > 0 {
		l.lost.Add(1)
		if now, last := time.Now().Unix(), l.jammed.Load(); now-last >= 60 && l.jammed.CompareAndSwap(last, now) {
			l.log.Error(tooSlow, "lost", lost)
		}
	}
}

const tooSlow = "the audit log is too slow: records are lost; check log.audit, its disk, or who reads the pipe"

// write is the queue's. A log that can't be written is reported once a minute, and
// requests go on.
func (l *Log) write(lines []byte, lost int) {
	err := l.makeRoom(len(lines))
	if err == nil {
		if l.torn {
			lines = append([]byte{'\n'}, lines...)
		}
		var n int
		n, err = l.out.Write(lines)
		l.torn = err != nil && n > 0 || err != nil && l.torn
		lines = lines[n:]
	}
	if err != nil {
		n := bytes.Count(lines, []byte{'\n'})
		l.failed += n
		l.lost.Add(int64(n))
	}
	if lost > 0 {
		l.log.Error(tooSlow, "lost", lost)
	}
	if err != nil && time.Since(l.said) >= time.Minute {
		l.said = time.Now()
		l.log.Error("the audit log can't be written; check log.audit, its disk and permissions", "error", err, "lost", l.failed)
		l.failed = 0
	}
}

// Lost returns how many records have been lost since the start.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	return l.lost.Load()
}

// Close writes what is left, and closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	if err := l.queue.close(); err != nil {
		return err // whose file is in use
	}
	if c, ok := l.out.(*lumberjack.Logger); ok {
		return c.Close()
	}
	return nil
}

func (l *Log) record(x *proxy.Exchange) Record {
	r := Record{
		Time: x.Start.UTC(), ID: x.ID, Crawler: x.Crawler, Method: x.Method, URL: x.URL, Tunnel: x.Tunnel,
		Status: x.Status, Bytes: x.Bytes, Duration: x.Duration.Seconds(), Error: x.Error,
	}
	if l.redact {
		r.URL = Redact(r.URL)
	}
	if x.Client.IsValid() {
		r.Client = x.Client.String()
	}
	for _, rule := range slices.Concat(x.Tags, x.Remembered) {
		r.Tags = append(r.Tags, rule.String())
	}
	d := x.Decision
	if d == nil {
		return r
	}
	r.Decision = "deny"
	if d.Allow {
		r.Decision = "allow"
	}
	if !d.Allow && !d.Enforced {
		r.Enforced = new(bool)
	}
	r.Reason, r.Note, r.Group, r.Token = d.Reason, d.Note, d.Group.Name(), d.Token
	if d.Reason == policy.ByRule {
		r.Rule, r.Line = d.Rule.String(), d.Rule.Line
	}
	if st := d.Robots; st != nil {
		r.Robots = &Robots{d.URL, st.Snapshot.Status, st.State, int64(st.Age / time.Second), st.Snapshot.SHA256}
	}
	return r
}

// Redact replaces the values of a URL's query by "*"; the names stay.
func Redact(url string) string {
	head, query, ok := strings.Cut(url, "?")
	if !ok {
		return url
	}
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		if name, _, ok := strings.Cut(p, "="); ok {
			pairs[i] = name + "=*"
		} else if p != "" {
			pairs[i] = "*" // a lone word may be a secret as well
		}
	}
	return head + "?" + strings.Join(pairs, "&")
}
