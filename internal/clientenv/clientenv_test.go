package clientenv

import (
	"os/exec"
	"testing"
)

// Paths with characters that shells interpret.
var paths = []string{
	"/plain/path", "", "/it's", "/a b", "/$HOME", "/`id`", "/$(id)", "/\\n", `/back\`, `/"q"`, "/~", "~", "/a;b", "/a\nb", "/*", "/ü", "/it\u2019s",
}

func TestQuoting(t *testing.T) {
	for _, c := range []struct {
		shell string
		quote func(string) string
	}{
		{"sh", QuoteShell},
		{"fish", QuoteFish},
	} {
		if _, err := exec.LookPath(c.shell); err != nil {
			t.Logf("no %s", c.shell)
			continue
		}
		for _, want := range paths {
			out, err := exec.Command(c.shell, "-c", "printf %s "+c.quote(want)).Output()
			if err != nil || string(out) != want {
				t.Errorf("%s: %s: got %q (%v), want %q", c.shell, c.quote(want), out, err, want)
			}
		}
	}
}

// PowerShell ends a string in single quotes at any of five characters
// (about_Quoting_Rules). A doubled character stands for itself.
func TestQuotingForPowerShell(t *testing.T) {
	for in, want := range map[string]string{
		"/plain":             "'/plain'",
		"/it's $HOME":        "'/it''s $HOME'",
		"/it\u2019s":         "'/it\u2019\u2019s'",
		"\u2018\u201a\u201b": "'\u2018\u2018\u201a\u201a\u201b\u201b'",
	} {
		if got := QuotePowerShell(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
