package store

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
)

// hourly returns a pacer with a budget of 100 requests an hour for each host.
func hourly() *pace.Pacer {
	all, _ := glob.Host("*")
	return pace.New(pace.Config{Budgets: []pace.Budget{{Hosts: []glob.Glob{all}, Requests: 100, Window: time.Hour}}}, nil)
}

// openLines keeps what the pacer counts in a folder.
func openLines(dir string, p *pace.Pacer, log *slog.Logger) *LineFile[pace.Kept] {
	f := OpenLineFile(filepath.Join(dir, "file"), p.Kept, p.Restore, log)
	f.Wait()
	return f
}

func hosts() []glob.Glob {
	all, _ := glob.Host("*")
	return []glob.Glob{all}
}

// send sends requests until one is refused, at most so many, and returns how many have started.
func send(t *testing.T, p *pace.Pacer, most int) (n int) {
	t.Helper()
	for ; n < most; n++ {
		turn, err := p.Wait(t.Context(), pace.Request{Origin: "https://shop.example:443", Crawler: "news"})
		if err != nil {
			break
		}
		turn.Done(pace.Response{Status: 200})
	}
	return n
}

// TestLineFile: after a restart, and after a kill but for the last two seconds, what was counted counts.
func TestLineFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log bytes.Buffer
		first := hourly()
		f := openLines(dir, first, slog.New(slog.NewTextHandler(&log, nil)))
		send(t, first, 10)
		time.Sleep(2500 * time.Millisecond) // fake clock; between two writes
		send(t, first, 20)
		time.Sleep(2500 * time.Millisecond) // fake clock; between two writes
		data, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || strings.Count(string(data), "\n") != 2 || strings.Contains(string(data), "shop") {
			t.Fatalf("the file has %q, %v", data, err)
		}
		killed := hourly()
		openLines(dir, killed, slog.New(slog.NewTextHandler(&log, nil))).Close()
		if n := send(t, killed, 200); n != 70 {
			t.Errorf("after a kill %d started, want 70", n)
		}
		send(t, first, 5)
		f.Close()
		restarted := hourly()
		openLines(dir, restarted, slog.New(slog.NewTextHandler(&log, nil))).Close()
		if n := send(t, restarted, 200); n != 65 {
			t.Errorf("after a restart %d started, want 65", n)
		}
		time.Sleep(time.Hour) // fake clock
		later := hourly()
		openLines(dir, later, slog.New(slog.NewTextHandler(&log, nil))).Close()
		if n := send(t, later, 200); n != 100 {
			t.Errorf("after an hour %d started, want 100", n)
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
		if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 0 {
			t.Errorf("the file: %v, %v", info, err)
		}
	})
}

// TestLineFileLong: of requests that were kept second by second for hours, none is lost, also from a file that was written anew.
func TestLineFileLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := hourly()
		config := pace.Config{Budgets: []pace.Budget{{Hosts: hosts(), Requests: 5000, Window: time.Hour}}}
		first.Use(config)
		f := openLines(dir, first, slog.New(slog.DiscardHandler))
		for range 3000 {
			send(t, first, 1)
			time.Sleep(time.Second) // fake clock
		}
		f.Close()
		for _, name := range []string{"line by line", "written anew"} {
			next := hourly()
			next.Use(config)
			openLines(dir, next, slog.New(slog.DiscardHandler)).Close() // writes the file anew
			if n := send(t, next, 5000); n != 2000 {
				t.Errorf("%s: %d started, want 2000", name, n)
			}
		}
		time.Sleep(20 * time.Minute) // fake clock
		next := hourly()
		next.Use(config)
		openLines(dir, next, slog.New(slog.DiscardHandler)).Close()
		if n := send(t, next, 5000); n < 2500 || n > 2700 { // 600 of 3000 have left the window, and a step may have
			t.Errorf("after 70 minutes %d started, want 2600", n)
		}
	})
}

// TestLineFileDamaged: what can be read of a damaged file counts, and the log says that something is missing.
func TestLineFileDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log bytes.Buffer
		first := hourly()
		f := openLines(dir, first, slog.New(slog.NewTextHandler(&log, nil)))
		send(t, first, 10)
		f.Close()
		path := filepath.Join(dir, "file")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, "{}\n\x00\n"+`{"key":"00","window":3600,"at":"2026-01-01T00:00:00Z","n":1}`+"\n"+string(data[:20])...)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		next := hourly()
		openLines(dir, next, slog.New(slog.NewTextHandler(&log, nil))).Close()
		if n := send(t, next, 200); n != 90 || !strings.Contains(log.String(), "damaged_lines=3") {
			t.Errorf("%d started, logged: %s", n, log.String())
		}
	})
}

// TestLineFileFull: while the file can't be written the log says so, and afterwards it has what was counted meanwhile.
func TestLineFileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		var log bytes.Buffer
		first := hourly()
		f := openLines(dir, first, slog.New(slog.NewTextHandler(&log, nil))) // the folder does not exist
		send(t, first, 10)
		time.Sleep(10 * time.Second) // fake clock
		synctest.Wait()
		if n := strings.Count(log.String(), "can't be kept"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		f.Close()
		next := hourly()
		openLines(dir, next, slog.New(slog.NewTextHandler(&log, nil))).Close()
		if n := send(t, next, 200); n != 90 {
			t.Errorf("%d started, want 90", n)
		}
	})
}

// TestLineFileGrowth: the file does not grow without bound while one host is requested for hours.
func TestLineFileGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		all, _ := glob.Host("*")
		p := pace.New(pace.Config{Budgets: []pace.Budget{{Hosts: []glob.Glob{all}, Requests: 1e9, Window: time.Hour}}}, nil)
		f := openLines(dir, p, slog.New(slog.DiscardHandler))
		var most int64
		for range 30_000 {
			send(t, p, 1)
			time.Sleep(time.Second) // fake clock
			if info, err := os.Stat(filepath.Join(dir, "file")); err == nil {
				most = max(most, info.Size())
			}
		}
		f.Close()
		if most < growth/2 || most > growth+100<<10 {
			t.Errorf("the file has %d bytes at most", most)
		}
	})
}
