package e2e

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
)

// TestGRPC: calls, streams in all directions, trailers and errors pass through the gate between gRPC's C core, in Python,
// and its clients in Python and Node.
func TestGRPC(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import grpc").Run() != nil {
		t.Skip("python3-grpcio is not installed")
	}
	dir := t.TempDir()
	authority, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		gatetest.Write(t, file, string(data))
		return file
	}
	cert := write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}))
	server := exec.Command(python, "testdata/clients/grpc_echo.py", "serve", cert, write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	config := write("gate.yaml", fmt.Appendf(nil, "data_dir: data\negress: {allow_private: [127.0.0.0/8], ca_file: %q}\n"+
		"overrides: [{hosts: [\"*\"], action: allow, reason: \"it has no robots.txt\"}]\n", write("root.pem", authority.PEM())))
	want := "unary a 1\nout a a a\nin ab\nboth a b\n" + strings.Repeat("error 7 not today\n", 8)
	for name, client := range map[string][]string{
		"grpcio":  {python, "testdata/clients/grpc_echo.py", "call"},
		"grpc-js": {node(), "testdata/clients/grpc_echo.cjs"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "grpc-js" && exec.Command(client[0], client[1:]...).Run() != nil {
				t.Skip("@grpc/grpc-js is not installed")
			}
			// The variables of run exempt loopback, where this server is.
			args := append([]string{"run", "-c", config, "--", "env", "-u", "no_proxy", "-u", "NO_PROXY"}, client...)
			run := exec.Command("robotsgate", append(args, "127.0.0.1:"+strings.TrimSpace(port))...)
			var report strings.Builder
			run.Stderr = &report
			got, err := run.Output()
			if err != nil || string(got) != want || !strings.Contains(report.String(), "12 requests, 0 denied") {
				t.Errorf("%v: got\n%swant\n%s%s", err, got, want, report.String())
			}
		})
	}
}
