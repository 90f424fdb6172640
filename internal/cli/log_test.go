package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
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

// TestLogIsPrintable: text from an origin can't break or reverse a line of the log, in either
// format.
func TestLogIsPrintable(t *testing.T) {
	const hidden = "a\u202e\u2066\u009b\u2028\x1b[2J\nb"
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		logger(format, slog.LevelInfo, &b).Warn(hidden, "origin", hidden, "error", errors.New(hidden))
		line := strings.TrimSuffix(b.String(), "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || strings.Count(line, `\u202e`) != 3 {
			t.Errorf("%s: %q", format, line)
		}
		if format == "json" {
			var record struct{ Msg, Origin, Error string }
			if err := json.Unmarshal([]byte(line), &record); err != nil || record.Msg != hidden || record.Origin != hidden || record.Error != hidden {
				t.Errorf("%s is read as %+v, %v", line, record, err)
			}
		}
	}
}

// TestErrorsArePrintable: the same for an error or a warning of a command.
func TestErrorsArePrintable(t *testing.T) {
	var b strings.Builder
	s := Streams{Err: &b}
	if status := s.Status(errors.New("one\u202e\ntwo\x1b[2J\r\n")); status != 2 {
		t.Errorf("exit status %d", status)
	}
	s.warn("%s", "three\n\u2066")
	s.note("%s", "four\u009b")
	want := "robotsgate: one\\u202e\nrobotsgate: two\\x1b[2J\nrobotsgate: warning: three\\n\\u2066\nrobotsgate: four\\u009b\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
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
		ended <- serve.Run(ctx, Streams{Out: banner, Err: &stderr})
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
	if err := run.Run(t.Context(), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr}); err != nil {
		t.Fatal(err)
	}
	log.Print("a foreign line")
	if all := foreign.String() + stderr.String(); strings.Contains(all, "a foreign line") {
		t.Errorf("printed: %s", all)
	}
}
