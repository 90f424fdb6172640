package docs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestKeyFiles gives every file of keyfiles.json to the program, as an argument and in a configuration: a
// good one is published with its id, for any other there is a message with the mistake.
func TestKeyFiles(t *testing.T) {
	var vectors []struct{ Name, PEM, B64, KeyID, Mistake string }
	if err := json.Unmarshal([]byte(gatetest.Read(t, "internal/keyfile/testdata/keyfiles.json")), &vectors); err != nil || len(vectors) < 20 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	dir := t.TempDir()
	for _, v := range vectors {
		der, err := base64.StdEncoding.DecodeString(v.B64)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, v.Name), append([]byte(v.PEM), der...), 0o600); err != nil {
			t.Fatal(err)
		}
		gatetest.Write(t, filepath.Join(dir, "gate.yaml"), "crawlers:\n- name: news\n  sign:\n    key_file: "+v.Name+"\n    agent: https://bots.example.com\n")
		for begins, args := range map[string][]string{
			"robotsgate: " + v.Name + ": ":                      {"keys", v.Name},
			"robotsgate: gate.yaml:4: crawlers.sign.key_file: ": {"keys", "-c", "gate.yaml"},
		} {
			var stdout, stderr bytes.Buffer
			cmd := exec.Command("robotsgate", args...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
			_ = cmd.Run()
			status, out, message := cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
			if v.Mistake == "" {
				if status != 0 || message != "" || !strings.Contains(out, `"kid":"`+v.KeyID+`"`) {
					t.Errorf("%s, %s: status %d, got %s%s, want the key %s", v.Name, args, status, out, message, v.KeyID)
				}
				continue
			}
			if status != 2 || out != "" || strings.Count(message, "\n") != 1 || !strings.HasPrefix(message, begins) {
				t.Errorf("%s, %s: status %d, got %s%s, want status 2 and one line that begins with %s", v.Name, args, status, out, message, begins)
			}
			for _, part := range []string{v.Name + ": ", v.Mistake, "robotsgate keys new "} {
				if !strings.Contains(message, part) {
					t.Errorf("%s, %s: got %q, want %q in it", v.Name, args, message, part)
				}
			}
		}
	}
}
