package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/console"
)

// TestForeignLog starts a gate, and writes to package log, as net/http's Transport does
// when an origin sends bytes without a request.
func TestForeignLog(t *testing.T) {
	flags, out := log.Flags(), log.Writer()
	defer func() {
		log.SetFlags(flags)
		log.SetOutput(out)
	}()
	const quote = ` starting with "HTTP/1.1 400 Basic Z2F0ZTpzM2NyZXQ="; err=<nil>` // a parent's, with its login
	const line = "Unsolicited response received on idle HTTP channel"
	for level, want := range map[string]int{"debug": 1, "info": 0} {
		t.Run(level, func(t *testing.T) {
			lines := logOf(t, level, func() { log.Print(line + quote) })
			found := 0
			for _, text := range lines {
				var record struct{ Level, Msg string }
				if err := json.Unmarshal([]byte(text), &record); err != nil {
					t.Errorf("%q is no JSON: %v", text, err)
				}
				if record.Msg == line && record.Level == "DEBUG" {
					found++
				}
			}
			if strings.Contains(strings.Join(lines, ""), "Z2F0ZTpzM2NyZXQ=") {
				t.Errorf("the login of the parent is in the log:\n%s", strings.Join(lines, "\n"))
			}
			if found != want {
				t.Errorf("%d records of it, want %d:\n%s", found, want, strings.Join(lines, "\n"))
			}
		})
	}
}

// logOf returns the log of a gate that serves while do runs.
func logOf(t *testing.T, level string, do func()) (lines []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gate.yaml")
	text := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlog: {format: json, level: " + level + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, banner := io.Pipe()
	var stderr strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		serve := Serve{Configured: Configured{Config: file}}
		ended <- serve.Run(ctx, console.Streams{Out: banner, Err: &stderr})
		banner.Close()
	}()
	said := bufio.NewScanner(stdout)
	for said.Scan() && !strings.Contains(said.Text(), "export ") {
	}
	do()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return strings.FieldsFunc(stderr.String(), func(r rune) bool { return r == '\n' })
}

// TestForeignLogOfRun: run shows no such lines beside the output of its command.
func TestForeignLogOfRun(t *testing.T) {
	flags, out := log.Flags(), log.Writer()
	defer func() {
		log.SetFlags(flags)
		log.SetOutput(out)
	}()
	var foreign, stderr strings.Builder
	log.SetOutput(&foreign)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	run := Run{Command: []string{"true"}}
	if err := run.Run(t.Context(), console.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr}); err != nil {
		t.Fatal(err)
	}
	log.Print("a foreign line")
	if all := foreign.String() + stderr.String(); strings.Contains(all, "a foreign line") {
		t.Errorf("printed: %s", all)
	}
}
