package gate

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestMistakes checks testdata/mistakes.txtar. Each file there is a configuration. The
// mistakes in a line follow it, each after #!. There are no other mistakes.
func TestMistakes(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/mistakes.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(ar.Files) == 0 {
		t.Fatal("no cases")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"text.txt": "no certificate\n", "long.txt": strings.Repeat("key ", 8), "good.pem": testKeyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range ar.Files {
		t.Run(f.Name, func(t *testing.T) {
			var want []string
			n := 0
			for line := range strings.Lines(string(f.Data)) {
				n++
				for i, text := range strings.Split(strings.TrimSuffix(line, "\n"), "#!") {
					if i > 0 {
						want = append(want, f.Name+":"+strconv.Itoa(n)+": "+strings.TrimSpace(text))
					}
				}
			}
			_, err := ParseConfig(filepath.Join(dir, f.Name), f.Data, lookup)
			if err == nil {
				t.Fatalf("accepted, want\n%s", strings.Join(want, "\n"))
			}
			got := strings.Split(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), "\n")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// lookup is the environment of the tests.
func lookup(name string) (string, bool) {
	value, ok := map[string]string{
		"WORD":   "oops",
		"PORT":   "8080",
		"EMPTY":  "",
		"NESTED": "${PORT}",
		"SECRET": "http://user:se cret@proxy:x",
		"LINES":  "one\ntwo",
		"LIST":   "[1, 2]",
	}[name]
	return value, ok
}

// TestMistakesKeepPasswords: no mistake repeats a value that may be a password.
func TestMistakesKeepPasswords(t *testing.T) {
	for _, login := range []string{
		`"u:hunter2"`, "hunter2", "{hunter2}", "{hunter2: x}", "*hunter2", "[hunter2]", "!!int hunter2", "!hunter2x {}",
		`{user: "u:hunter2"}`, "{user: [hunter2]}", "{user: *hunter2}", `{user: "hunter2\t"}`, "{user: !!int hunter2}",
		"{user: u, password_bcrypt: hunter2}", `{user: u, password_bcrypt: "${hunter2-x}"}`, `{user: u, password_bcrypt: "${hunter2"}`,
		`{user: "${hunter2-x}", password_bcrypt: x}`, "{user: u, password_bcrypt: {hunter2: x}}", "{user: u, password_bcrypt: !!float hunter2}",
	} {
		for _, text := range []string{"crawlers:\n- name: a\n  login: " + login + "\n", "crawlers:\n- {name: a, login: " + login + "}\n"} {
			_, err := ParseConfig("test.yaml", []byte(text), noEnv)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v", login, err)
			}
		}
	}
	_, err := ParseConfig("test.yaml", []byte("egress: {proxy: !!int \"http://u:hunter2@proxy:3128\"}"), noEnv)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("egress.proxy: got %v", err)
	}
}
