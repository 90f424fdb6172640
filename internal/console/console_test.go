package console

import (
	"errors"
	"strings"
	"testing"
)

// TestErrorsArePrintable: text from the network can't break or reverse a line of an error or a warning.
func TestErrorsArePrintable(t *testing.T) {
	var b strings.Builder
	s := Streams{Err: &b}
	if status := s.Status(errors.New("one\u202e\ntwo\x1b[2J\r\n")); status != 2 {
		t.Errorf("exit status %d", status)
	}
	s.Warn("%s", "three\n\u2066")
	s.Note("%s", "four\u009b")
	want := "robotsgate: one\\u202e\nrobotsgate: two\\x1b[2J\nrobotsgate: warning: three\\n\\u2066\nrobotsgate: four\\u009b\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
