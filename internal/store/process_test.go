package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/snapshot"
)

// asProcess makes this test binary another process that uses the folder.
const asProcess = "STORE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asProcess); dir != "" {
		otherProcess(dir)
		return
	}
	os.Exit(gatetest.InMemory(m))
}

// processSet is the n-th set of another process.
func processSet(n int) snapshot.Set {
	return answeredAt(time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC), fmt.Sprintf("User-agent: *\nDisallow: /%d\n", n))
}

const changes = "https://changes.example"

// otherProcess saves without end, and prints how far it is.
func otherProcess(dir string) {
	release, err := Own(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release() // also so that its file is not closed as garbage
	d, err := Open(dir, ample, slog.New(slog.DiscardHandler))
	for i := 0; err == nil; i++ {
		err = errors.Join(d.Save(context.Background(), origin(i), processSet(i)), d.Save(context.Background(), changes, processSet(i)))
		fmt.Println("saved", i, err)
	}
	fmt.Println(err)
}

// other starts another process. It is killed at the end of the test.
func other(t *testing.T, dir string) (kill func(), lines *bufio.Scanner) {
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
	kill = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(kill)
	return kill, bufio.NewScanner(out)
}

// TestKilled: all that a killed process had saved is found, and none is damaged. A process that reads meanwhile sees
// every answer once, and with its text.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	kill, lines := other(t, dir)
	saved := 0
	for ; saved < 60; saved++ {
		if want := fmt.Sprint("saved ", saved, " <nil>"); !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		if saved%20 != 0 {
			continue
		}
		if release, err := Own(dir); release != nil || err != nil {
			t.Errorf("the folder of another process: %v", err)
		}
		r, err := Read(dir, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		history, err := r.History(changes)
		if err != nil || len(history) < saved+1 {
			t.Errorf("%d answers, %v, want %d at least", len(history), err, saved+1)
		}
		for i, a := range history[:min(saved+1, len(history))] {
			if want := processSet(i); a.Snapshot.SHA256 != want.Good.SHA256 {
				t.Errorf("answer %d: got %+v", i, a.Snapshot)
			}
			if _, err := r.Body(changes, a.Snapshot.SHA256); err != nil {
				t.Errorf("the body of answer %d: %v", i, err)
			}
		}
	}
	kill()
	d := openFor(t, dir, ample)
	for i := range saved {
		loaded(t, d, origin(i), processSet(i))
	}
	if n := len(answers(t, d.Reader, changes)); n < saved {
		t.Errorf("%d answers, want %d at least", n, saved)
	}
	release, err := Own(dir)
	if release == nil || err != nil {
		t.Fatalf("the folder of a killed process: %v", err)
	}
	release()
}
