package docs

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestReadmeEvidence makes a bundle with the commands of docs/evidence.md, and checks it with the program in it. A
// bundle with another byte in a record must fail.
func TestReadmeEvidence(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import cryptography").Run() != nil {
		t.Skip("Python's cryptography is not installed: Debian's package python3-cryptography has it")
	}
	dir := t.TempDir()
	writeSite(t, filepath.Join(dir, "site"))
	gate := gatetest.ServeSite(t, filepath.Join(dir, "site"), dir, "admin: {listen: \"\"}\nlog: {audit: audit.jsonl}\n")
	client := gatetest.Client(t, gate.Proxy)
	gatetest.Request(t, client, http.MethodGet, "http://example.com/offers.html", http.StatusOK)
	gatetest.Request(t, client, http.MethodGet, "http://example.com/private/plans.html", http.StatusForbidden)
	if err := gate.Terminate(); err != nil {
		t.Fatal(err)
	}
	run := func(command string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Stderr = dir, t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(out)
	}
	var commands []string
	for _, block := range blocks(t, "sh") {
		if strings.HasPrefix(block, "robotsgate evidence") {
			commands = append(commands, strings.TrimSpace(block))
		}
	}
	if len(commands) != 3 {
		t.Fatalf("docs/evidence.md has the commands %q", commands)
	}
	key := strings.TrimSpace(run(commands[0]))
	run(strings.NewReplacer("2026-05-01", "1h", "--until 2026-05-31 ", "").Replace(commands[1]))
	example, _, _ := strings.Cut(commands[2][strings.Index(commands[2], "'")+1:], "'")
	if out := run(strings.Replace(commands[2], example, key, 1)); !strings.HasPrefix(out, "2 records, 2 proven, 2 decided alike, missing evidence: none\n") {
		t.Errorf("evidence check prints\n%s", out)
	}
	program := ""
	for _, block := range blocks(t, "python") {
		if strings.Contains(block, "zipfile") {
			program = block
		}
	}
	whole := gatetest.Read(t, filepath.Join(dir, "may.zip"))
	gatetest.Write(t, filepath.Join(dir, "changed.zip"), changed(t, whole))
	for file, want := range map[string]string{"may.zip": "2 records proven\n", "changed.zip": ""} {
		cmd := exec.Command(python, "-c", program, file, key)
		cmd.Dir = dir
		out, err := cmd.Output()
		if string(out) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %v, %q, want %q", file, err, out, want)
		}
	}
}

// changed returns a bundle with another path in its records.
func changed(t *testing.T, bundle string) string {
	t.Helper()
	in, err := zip.NewReader(strings.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(f.Name)
		if err == nil {
			_, err = w.Write(bytes.Replace(text, []byte("/offers.html"), []byte("/Offers.html"), 1))
		}
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
