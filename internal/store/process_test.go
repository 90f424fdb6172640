package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/snapshot"
)

// asProcess makes this test binary another process that uses the folder, and asTask says what it does there.
const (
	asProcess = "STORE_TEST_DIR"
	asTask    = "STORE_TEST_TASK"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(asProcess); dir != "" {
		otherProcess(dir, os.Getenv(asTask))
		return
	}
	os.Exit(gatetest.InMemory(m))
}

// processSet is the n-th set of another process.
func processSet(n int) snapshot.Set {
	body := robots(n, 100)
	s := &snapshot.Snapshot{Status: 200, Fetched: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC), SHA256: snapshot.Digest(body)}
	return snapshot.Set{Good: s, Last: s, Body: []byte(body)}
}

const floodBytes = 512 << 10

// otherProcess saves without end, and prints how far it is. In a flood it saves within floodBytes.
func otherProcess(dir, task string) {
	limits := ample
	if task == "flood" {
		limits.Bytes = floodBytes
	}
	d, err := Open(dir, limits, slog.New(slog.DiscardHandler))
	if errors.Is(err, ErrInUse) {
		fmt.Println("in use")
		return
	}
	for i := 0; err == nil; i++ {
		sets := map[string]snapshot.Set{origin(i): processSet(i)}
		if task == "flood" {
			changes, stays := processSet(i), processSet(0)
			changes.Body = []byte(robots(i, 9000)) // so that segments soon need little
			changes.Good.SHA256 = snapshot.Digest(string(changes.Body))
			sets = map[string]snapshot.Set{"https://changes.example": changes, "https://stays.example": stays, "https://gone.example": stays}
			if i%2 == 1 {
				sets["https://gone.example"] = snapshot.Set{}
			}
			for n := range 20 {
				sets[origin(20*i+n)] = processSet(20*i + n/2)
			}
		}
		err = d.Save(context.Background(), sets)
		fmt.Println("saved", i, err)
	}
	fmt.Println(err)
}

// other starts another process. It is killed at the end of the test.
func other(t *testing.T, dir, task string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProcess+"="+dir, asTask+"="+task)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// killAfter kills a process after n saves, in the middle of another one, and returns how many it has reported.
func killAfter(t *testing.T, cmd *exec.Cmd, lines *bufio.Scanner, n int) (saved int) {
	t.Helper()
	for ; saved < n; saved++ {
		if want := fmt.Sprint("saved ", saved, " <nil>"); !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
	cmd.Process.Kill()
	for lines.Scan() {
		saved++
	}
	cmd.Wait()
	return saved
}

func TestOtherProcess(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	_, lines := other(t, dir, "")
	if !lines.Scan() || lines.Text() != "in use" {
		t.Errorf("another process says %q, want in use", lines.Text())
	}
	d.Close()
	cmd, lines := other(t, dir, "")
	lines.Scan()
	if _, err := Open(dir, ample, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want ErrInUse with the folder", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	openFor(t, dir, ample)
}

// TestKilled: all sets that a killed process had saved are found, and none is damaged.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := other(t, dir, "")
	saved := killAfter(t, cmd, lines, 30)
	d := openFor(t, dir, ample)
	for i := range saved {
		loaded(t, d, origin(i), processSet(i))
	}
	sound(t, d)
}

// TestKilledInFlood: after a crash no set names a missing body, no forgotten set is back, and no space is lost.
func TestKilledInFlood(t *testing.T) {
	dir := t.TempDir()
	for run := range 6 {
		cmd, lines := other(t, dir, "flood")
		saved := killAfter(t, cmd, lines, 20+run)
		d := openFor(t, dir, Limits{Keep: ample.Keep, Bytes: floodBytes})
		loaded(t, d, "https://stays.example", processSet(0))
		if _, ok := d.Load(t.Context(), "https://gone.example"); ok && saved%2 == 0 { // the last save, or the one that was broken off
			absent(t, d, origin(20*saved-1))
		}
		left := 0
		for i := range 20 * (saved + 1) {
			if got, ok := d.Load(t.Context(), origin(i)); ok {
				left++
				if err := same(got, processSet(20*(i/20)+i%20/2)); err != nil {
					t.Errorf("%s: %v", origin(i), err)
				}
			}
		}
		if left < 50 {
			t.Errorf("%d records are left", left)
		}
		history, err := d.History("https://changes.example")
		if err != nil || len(history) == 0 {
			t.Errorf("got %v, %v", history, err)
		}
		sound(t, d)
		for range 10 {
			save(t, d, map[string]snapshot.Set{"https://changes.example": answered(robots(run, 9000))})
		}
		if n := onDisk(t, dir); n > floodBytes {
			t.Errorf("%d bytes on disk", n)
		}
		sound(t, d)
		d.Close()
	}
}

// TestReadBeside reads again and again while another process saves, moves and removes segments.
func TestReadBeside(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, ample.Keep); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
	_, lines := other(t, dir, "flood")
	lines.Scan()
	saved := make(chan int)
	go func() {
		n := 1
		for lines.Scan() {
			if !strings.HasSuffix(lines.Text(), "<nil>") {
				t.Errorf("the other process says %q", lines.Text())
			}
			select {
			case saved <- n:
				return
			default:
				n++
			}
		}
	}()
	stays, first := processSet(0), uint32(0)
	reads := 0
	// On a busy machine the other process takes longer to remove segments.
	for began := time.Now(); time.Since(began) < 3*time.Second/2 || first < 5 && time.Since(began) < time.Minute; reads++ {
		r, err := Read(dir, ample.Keep)
		if err != nil {
			t.Fatal(err)
		}
		first = r.segments[0].number
		history, err := r.History("https://stays.example")
		if err != nil || len(history) != 1 || !history[0].To.IsZero() || history[0].Snapshot.SHA256 != stays.Good.SHA256 {
			t.Errorf("got %+v, %v", history, err)
		}
		if body, err := r.Body(stays.Good.SHA256); err != nil || body != string(stays.Body) {
			t.Errorf("got %q, %v", body, err)
		}
		history, err = r.History("https://changes.example")
		if err != nil || len(history) == 0 {
			t.Errorf("got %v, %v", history, err)
		}
		for _, a := range history {
			if _, err := r.Body(a.Snapshot.SHA256); err != nil && !(errors.Is(err, fs.ErrNotExist) && !a.To.IsZero()) { // dropped, but still in the files
				t.Errorf("the body of %+v: %v", a, err)
			}
		}
		if hosts, err := r.HostOrigins("stays.example"); err != nil || len(hosts) != 1 {
			t.Errorf("got %v, %v", hosts, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d reads, while %d segments went", reads, first)
	select {
	case n := <-saved:
		t.Logf("%d saves", n)
	case <-time.After(time.Minute):
		t.Error("the other process does not save any more")
	}
	if first < 5 {
		t.Errorf("the first segment is %d; few were removed", first)
	}
}
