package audit

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

var testKey = keyfile.New(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))

// open opens a log that is closed by the test; logged gets what it logs.
func open(t testing.TB, o Options, out, logged io.Writer) *Log {
	t.Helper()
	if logged == nil {
		logged = io.Discard
	}
	if e := &o.Evidence; e.Key == nil {
		e.Key, e.Name, e.Gate, e.Dir = testKey, "log.example", cmp.Or(e.Gate, "gate"), cmp.Or(e.Dir, t.TempDir())
	}
	l, err := Open(o, out, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// decided is a decision by a robots.txt of these rules.
func decided(rules string, tokens ...string) *policy.Decision {
	r := policy.Robots{Settings: snapshot.Settings{MaxAge: time.Hour, MaxBytes: 1 << 20}}
	d := r.Judge(200, []byte(rules), canonical.Target{Path: "/private/x"}, tokens)
	d.RobotsURL = "http://a.example/robots.txt"
	return d
}

// entriesIn returns the lines of entries in a log.
func entriesIn(log []byte) (entries [][]byte) {
	for line := range bytes.Lines(log) {
		if !evidence.IsCheckpoint(line) {
			entries = append(entries, line)
		}
	}
	return entries
}

func TestEntry(t *testing.T) {
	start := time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)
	denied := decided("User-agent: examplebot\nDisallow: /private/\n", "ExampleBot")
	reported := *denied
	reported.Enforced = false
	for _, test := range []struct {
		name string
		d    *policy.Decision
		x    record.Record
		want string // without robots, which is checked separately
	}{
		{"denied", denied, record.Record{
			ID: "ID", Time: start, Client: "192.0.2.1", Method: "GET", Origin: "http://a.example", Path: "/private/x?a=1&b",
			Crawler: "news", Status: 403, Bytes: 7, Duration: 1.5,
		}, `{"time":"2026-01-02T02:04:05Z","id":"ID","crawler":"news","client":"192.0.2.1","method":"GET",` +
			`"origin":"http://a.example","path":"/private/x?a=1&b","decision":"deny","reason":"rule","rule":"Disallow: /private/","line":2,` +
			`"group":"examplebot","token":"ExampleBot","status":403,"bytes":7,"duration":1.5}`},
		{"report mode", &reported, record.Record{Time: start, Method: "GET", Origin: "http://a.example", Path: "/", Status: 200, Tags: []string{"noindex", "max-snippet=20"}},
			`{"time":"2026-01-02T02:04:05Z","id":"","method":"GET","origin":"http://a.example","path":"/","decision":"deny","enforced":false,` +
				`"reason":"rule","rule":"Disallow: /private/","line":2,"group":"examplebot","token":"ExampleBot",` +
				`"tags":["noindex","max-snippet=20"],"status":200,"bytes":0,"duration":0}`},
		{"not decided", nil, record.Record{Time: start, Method: "GET", URL: "/x", Error: "no host", Status: 400},
			`{"time":"2026-01-02T02:04:05Z","id":"","method":"GET","url":"/x","status":400,"bytes":0,"duration":0,"error":"no host"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			l := open(t, Options{Config: Config{File: "-"}}, &out, nil)
			if test.d != nil {
				test.d.Record(&test.x)
			}
			l.Write(&test.x)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var r record.Record
			if err := json.Unmarshal(entriesIn(out.Bytes())[0], &r); err != nil {
				t.Fatal(err)
			}
			if d := test.d; d != nil && (r.Robots == nil || r.Robots.SHA256 != d.Robots.Snapshot.SHA256 || r.Robots.URL != d.RobotsURL || r.Robots.Status != 200 || r.Robots.State != string(snapshot.Fresh)) {
				t.Errorf("robots: got %+v", r.Robots)
			}
			r.Robots, r.Place, r.Gate = nil, record.Place{}, ""
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(r); err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(got.String()) != test.want {
				t.Errorf("got  %swant %s", got.String(), test.want)
			}
		})
	}
}

// TestWholeLines writes from many goroutines at once, as requests do.
func TestWholeLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, Options{Config: Config{File: file, Keep: 1}}, nil, nil)
	const writers, each = 16, 50
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				l.Write(&record.Record{Method: "GET", Origin: "http://a.example", Path: "/?" + strings.Repeat("x", 1000)})
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range entriesIn(data) {
		n++
		var r record.Record
		if err := json.Unmarshal(line, &r); err != nil || len(r.Path) != 1002 {
			t.Fatalf("line %d: %v, path %q", n, err, r.Path)
		}
	}
	if n != writers*each {
		t.Errorf("got %d lines, want %d", n, writers*each)
	}
}

// TestUnwritable: a failure is logged once a minute, and Write goes on.
func TestUnwritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		l := open(t, Options{Config: Config{File: "-"}}, &repairableDisk{}, &logged)
		for _, step := range []struct {
			wait time.Duration
			want int // reports up to now
		}{
			{0, 1},
			{59 * time.Second, 1},
			{2 * time.Second, 2},
			{time.Second, 2},
			{time.Minute, 3},
		} {
			time.Sleep(step.wait) // fake clock
			l.Write(&record.Record{})
			synctest.Wait()
			if got := strings.Count(logged.String(), "no space left on device"); got != step.want {
				t.Errorf("%d reports, want %d:\n%s", got, step.want, logged.String())
			}
		}
		l.Close()
	})
}

// A closedOutput is one that can't be written at all.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestOpen: an output that can't be opened is an error.
func TestOpen(t *testing.T) {
	if _, err := Open(Options{Config: Config{File: "-"}}, closedOutput{}, slog.New(slog.DiscardHandler)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed standard output: got %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Config: Config{File: filepath.Join(file, "audit.jsonl")}}, nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file in place of the folder: no error")
	}
}

// TestRotation fills a file. The next one begins with a checkpoint, and the log goes on in it.
func TestRotation(t *testing.T) {
	for keep, want := range map[int]int{0: 1, 1: 2} {
		dir := t.TempDir()
		file := filepath.Join(dir, "audit.jsonl")
		synctest.Test(t, func(t *testing.T) {
			l := open(t, Options{Config: Config{File: file, Keep: keep}}, nil, nil)
			l.Write(&record.Record{ID: "first", Method: "GET"})
			synctest.Wait()
			if err := os.Truncate(file, maxFile-10); err != nil {
				t.Fatal(err)
			}
			l.Write(&record.Record{ID: "second", Method: "GET"})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("keep %d: %v, %d files, want %d", keep, err, len(entries), want)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, []byte(`{"checkpoint":"log.example\n1\n`)) || len(entriesIn(data)) != 1 || !bytes.Contains(data, []byte(`"index":1}`)) {
			t.Errorf("keep %d: %s", keep, data)
		}
	}
}

// A pipe blocks writes until it is read.
type pipe struct {
	reader chan struct{}
	got    bytes.Buffer
}

func (p *pipe) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	<-p.reader
	return p.got.Write(b)
}

// TestJam writes to a pipe that is not read: Write goes on, the waiting lines are bounded,
// and lost entries are counted.
func TestJam(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		out := &pipe{reader: make(chan struct{})}
		l := open(t, Options{Config: Config{File: "-"}}, out, &logged)
		long := &record.Record{Origin: "http://a.example", Path: "/" + strings.Repeat("x", 1<<20), Decision: "allow"}
		for range 40 {
			l.Write(long)
			synctest.Wait()
		}
		if err := l.Close(); err == nil {
			t.Error("Close reports that all was written")
		}
		close(out.reader)
		synctest.Wait()
		// One entry waits for the first line of the log, which is being written, and as many as there is room for wait behind it.
		if n := len(entriesIn(out.got.Bytes())); n != 16 || !strings.Contains(logged.String(), "lost=24") {
			t.Errorf("%d records were written: %s", n, logged.String())
		}
		if got := l.Lost(); got != 24 {
			t.Errorf("%d are counted as lost, want 24", got)
		}
	})
}

// TestUnencodable: an entry that can't be encoded counts as lost. The log works again after the next probe, and the next
// entry states the loss.
func TestUnencodable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := open(t, Options{Config: Config{File: "-"}}, &out, nil)
		l.Write(&record.Record{ID: "odd", Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)})
		synctest.Wait()
		if l.Err() == nil || l.Lost() != 1 {
			t.Errorf("%v, %d lost", l.Err(), l.Lost())
		}
		time.Sleep(probeInterval) // fake clock
		synctest.Wait()
		if err := l.Err(); err != nil {
			t.Errorf("after a probe: %v", err)
		}
		l.Write(&record.Record{ID: "next"})
		synctest.Wait()
		if l.Err() != nil || !strings.Contains(out.String(), `"id":"next"`) || !strings.Contains(out.String(), `"lost":1,"index":0`) {
			t.Errorf("%v: %s", l.Err(), out.String())
		}
		l.Close()
	})
}

// A halfDisk writes half of the first write.
type halfDisk struct {
	bytes.Buffer
	full bool
}

func (d *halfDisk) Write(b []byte) (int, error) {
	if !d.full && len(b) > 0 {
		d.full = true
		n, _ := d.Buffer.Write(b[:len(b)/2])
		return n, errors.New("no space left on device")
	}
	return d.Buffer.Write(b)
}

// TestTornLine: an entry that was written in part damages no other, and is counted.
func TestTornLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		disk := &halfDisk{}
		l := open(t, Options{Config: Config{File: "-"}}, disk, &logged)
		for _, id := range []string{"first", "second"} {
			l.Write(&record.Record{ID: id})
			synctest.Wait()
		}
		l.Close()
		half, rest, _ := strings.Cut(disk.String(), "\n")
		entries := entriesIn([]byte(rest))
		var r record.Record
		if !strings.HasPrefix(half, `{"checkpoint":"`) || len(entries) != 1 || json.Unmarshal(entries[0], &r) != nil || r.ID != "second" {
			t.Errorf("got %q", disk.String())
		}
		if !strings.Contains(logged.String(), "lost=1") || l.Lost() != 1 {
			t.Errorf("%d are counted as lost; logged: %s", l.Lost(), logged.String())
		}
	})
}

// TestCheckpointBefore: records are written within a second of a checkpoint, after a pause too, so that a start after a kill
// can tell them from records that were added.
func TestCheckpointBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(bytes.Buffer)
		l := open(t, Options{Config: Config{File: "-"}}, out, nil)
		for _, pause := range []time.Duration{0, 10 * time.Millisecond, 900 * time.Millisecond, 2 * time.Second, time.Hour, 1500 * time.Millisecond} {
			time.Sleep(pause) // fake clock
			l.Write(&record.Record{Method: "GET", Time: time.Now()})
			synctest.Wait()
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var signed, last time.Time
		for line := range bytes.Lines(out.Bytes()) {
			var x struct{ Time time.Time }
			if err := json.Unmarshal(line, &x); err != nil {
				t.Fatal(err)
			}
			if !evidence.IsCheckpoint(line) {
				if x.Time.Sub(signed) > checkpointInterval {
					t.Errorf("a record of %v, and the checkpoint before is of %v", x.Time, signed)
				}
				continue
			}
			if signed = x.Time; signed.Sub(last) < checkpointInterval && !bytes.Contains(line, []byte(`"end":true`)) {
				t.Errorf("checkpoints at %v and %v", last, signed)
			}
			last = signed
		}
	})
}
