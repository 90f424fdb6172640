package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
)

// asProcess makes this test binary another process that uses the folder.
const asProcess = "STORE_TEST_DIR"

// asFlood makes that process save records of many hosts at once, and some that
// change, within floodBytes.
const (
	asFlood    = "STORE_TEST_FLOOD"
	floodBytes = 1 << 20
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(asProcess); dir != "" {
		otherProcess(dir)
		return
	}
	os.Exit(m.Run())
}

// otherProcess saves without end, and prints how far it is.
func otherProcess(dir string) {
	limits := ample
	if os.Getenv(asFlood) != "" {
		limits.Bytes = floodBytes
	}
	d, err := Open(dir, limits, slog.New(slog.DiscardHandler))
	if errors.Is(err, ErrInUse) {
		fmt.Println("in use")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; ; i++ {
		if os.Getenv(asFlood) != "" {
			records := map[string]policy.Record{"https://changes.example": answered(body(i)), "https://stays.example": answered("stays")}
			for n := range 100 {
				records[origin(100*i+n)] = answered(body(100*i + n/2))
			}
			fmt.Println("saved", i, d.Save(context.Background(), records))
			continue
		}
		err := d.Save(context.Background(), map[string]policy.Record{origin(i): good(body(i))})
		fmt.Println("saved", i, err)
	}
}

func origin(i int) string { return fmt.Sprintf("https://%d.example", i) }

func body(i int) string { return fmt.Sprintf("User-agent: *\nDisallow: /%d\n", i) }

func other(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProcess+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestOtherProcess(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	cmd, lines := other(t, dir)
	if !lines.Scan() || lines.Text() != "in use" {
		t.Errorf("another process says %q, want in use", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestKilled: all records that a killed process had saved are found, and none is damaged.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := other(t, dir)
	const n = 30
	for i := range n {
		if want := fmt.Sprint("saved ", i, " <nil>"); !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
	cmd.Process.Kill() // in the middle of the next
	cmd.Wait()
	d, log := open(t, dir)
	for i := range n {
		if got, ok := d.Load(t.Context(), origin(i)); !ok || same(got, good(body(i))) != nil {
			t.Errorf("%d: got %+v, %v", i, got, ok)
		}
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log)
	}
}

// TestKilledInFlood: after a crash no record names a missing body, and no file is kept
// for ever.
func TestKilledInFlood(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(asFlood, "1")
	last := 0
	for run := range 5 {
		cmd, lines := other(t, dir)
		for range 5 + run {
			if !lines.Scan() || !strings.HasSuffix(lines.Text(), " <nil>") {
				t.Fatalf("got %q", lines.Text())
			}
		}
		cmd.Process.Kill() // somewhere in the next
		saved := 5 + run
		for lines.Scan() {
			saved++
		}
		cmd.Wait()
		last = max(last, saved+1)

		synctest.Test(t, func(t *testing.T) {
			unfinished, _ := filepath.Glob(filepath.Join(dir, bodiesDir, "*", tempPrefix+"*"))
			for _, path := range unfinished { // it has the real time
				if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			d, log := open(t, dir)
			defer d.Close()
			left := 0
			for i := range 100 * last {
				if _, ok := d.Load(t.Context(), origin(i)); ok {
					left++
				}
			}
			if got, ok := d.Load(t.Context(), "https://stays.example"); !ok || string(got.Body) != "stays" {
				t.Errorf("got %+v, %v", got, ok)
			}
			if left < 50 || log.Len() > 0 {
				t.Errorf("%d records are left, log: %s", left, log)
			}
			time.Sleep(25 * time.Hour)
			sound(t, d)
		})
	}
}

// TestEngine: an engine does not fetch again what the engine before it has on disk.
func TestEngine(t *testing.T) {
	dir := t.TempDir()
	fetches := 0
	web := transport(func(r *http.Request) (*http.Response, error) {
		fetches++
		w := httptest.NewRecorder()
		switch r.URL.Host {
		case "rules.example":
			w.WriteString("User-agent: *\nDisallow: /private/\n")
		case "blocked.example":
			w.WriteHeader(403)
		case "dead.example":
			return nil, errors.New("dead")
		default:
			w.WriteHeader(404)
		}
		return w.Result(), nil
	})
	for run := range 3 {
		d, log := open(t, dir)
		e, err := policy.New(policy.Config{
			Robots: policy.Robots{
				MaxAge: 24 * time.Hour, MinAge: time.Hour, Timeout: time.Second, MaxBytes: 512 << 10, MaxRedirects: 5, CacheBytes: 1 << 20,
			},
			Transport: web, Store: d, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range map[string]policy.Reason{
			"rules.example": policy.ByRule, "blocked.example": policy.IsUnavailable, "none.example": policy.IsUnavailable, "dead.example": policy.IsUnreachable,
		} {
			target, err := policy.ParseURL("https://" + host + "/private/")
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Decide(t.Context(), policy.Request{Target: target, Crawler: &policy.Crawler{Mode: policy.Enforce}, UserAgent: "Bot/1.0"})
			if err != nil || got.Reason != want {
				t.Errorf("run %d: %s: got %s, %v, want %s", run, host, got.Reason, err, want)
			}
		}
		e.Close()
		d.Close()
		if log.Len() > 0 {
			t.Errorf("run %d: log: %s", run, log)
		}
		if fetches != 4 {
			t.Errorf("run %d: %d fetches, want 4", run, fetches)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
