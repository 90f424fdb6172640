package bench

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A proxy is a process that is measured.
type proxy struct {
	name  string
	addr  string
	spent func() (spent, error)
}

// spent is what a process has used up since it began.
type spent struct {
	seconds float64 // of CPU
	allocs  float64
	bytes   float64 // allocated
}

// each returns what was spent between two looks for each of so many requests.
func (s spent) each(before spent, requests int) spent {
	n := float64(requests)
	return spent{(s.seconds - before.seconds) / n, (s.allocs - before.allocs) / n, (s.bytes - before.bytes) / n}
}

// An arena is everything that runs, in processes of its own.
type arena struct {
	few, many, secure string // ports of the origin
	forwarder         *proxy
	goproxy           *proxy
	gate              *proxy
	admin             string
}

// newArena starts all of it. Audit says whether the gate writes down what it does.
func newArena(b *testing.B, config string) *arena {
	b.Helper()
	dir := b.TempDir()
	cert := filepath.Join(dir, "cert.pem")
	writeCertificate(b, cert)
	a := &arena{}
	line := start(b, exec.Command(os.Args[0], cert), "origin", func(line string) bool { return true })
	if ports := strings.Fields(line); len(ports) == 3 {
		a.few, a.many, a.secure = ports[0], ports[1], ports[2]
	} else {
		b.Fatalf("the origin says %q", line)
	}
	for role, p := range map[string]**proxy{"forwarder": &a.forwarder, "goproxy": &a.goproxy} {
		addr := start(b, exec.Command(os.Args[0], cert), role, func(string) bool { return true })
		*p = &proxy{role, addr, func() (spent, error) { return readSpent("http://" + addr + spentPath) }}
	}
	a.startGate(b, dir, config)
	return a
}

// profileKey names the file for a CPU profile of the gate. With it the gate is part of
// this test's own binary, which is otherwise the same but was built without a profile.
const profileKey = "ROBOTSGATE_BENCH_PROFILE"

func (a *arena) startGate(b *testing.B, dir, config string) {
	file := filepath.Join(dir, "config.yaml")
	text := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\n" +
		"egress: {allow_private: [127.0.0.0/8], ca_file: cert.pem}\n" + config
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	gate := exec.Command(os.Args[0], file)
	role := "gate"
	if os.Getenv(profileKey) == "" {
		program := filepath.Join(dir, "robotsgate")
		build := exec.Command("go", "build", "-o", program, "robotsgate")
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("go build: %v\n%s", err, out)
		}
		gate, role = exec.Command(program, "serve", "-c", file), ""
	}
	a.gate = &proxy{name: "gate"}
	start(b, gate, role, func(line string) bool {
		if _, addr, ok := strings.Cut(line, " listens on http://"); ok {
			a.gate.addr = addr
		}
		if addr, ok := strings.CutPrefix(line, "Admin: "); ok {
			a.admin = addr
		}
		return strings.HasPrefix(line, "To use it")
	})
	a.gate.spent = func() (spent, error) { return readMetrics(a.admin + "/metrics") }
}

// start runs a process until the benchmark ends, and returns the line of its output
// that ready is waiting for.
func start(b *testing.B, cmd *exec.Cmd, role string, ready func(line string) bool) string {
	b.Helper()
	cmd.Env = append(os.Environ(), roleKey+"="+role)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if ready(lines.Text()) {
			go io.Copy(io.Discard, out)
			return lines.Text()
		}
	}
	b.Fatalf("%s ended instead of serving:\n%s", cmd, errs.String())
	return ""
}

// writeCertificate makes one certificate for every origin, and its key.
func writeCertificate(b *testing.B, file string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
}

func readSpent(url string) (s spent, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	_, err = fmt.Fscan(resp.Body, &s.seconds, &s.allocs, &s.bytes)
	return s, err
}

// readMetrics reads what the gate says of itself.
func readMetrics(url string) (s spent, err error) {
	for name, to := range map[string]*float64{
		"process_cpu_seconds_total": &s.seconds, "go_memstats_mallocs_total": &s.allocs, "go_memstats_alloc_bytes_total": &s.bytes,
	} {
		if *to, err = readMetric(url, name); err != nil {
			return s, err
		}
	}
	return s, nil
}

func readMetric(url, name string) (float64, error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s says nothing of %s", url, name)
}
