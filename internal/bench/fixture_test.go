//go:build unix

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
	"sync"
	"testing"
	"time"
)

// A proxy is a process to be measured.
type proxy struct {
	name  string
	addr  string
	spent func() (spent, error)
}

// spent is the use of resources of a process since it started.
type spent struct {
	seconds float64 // of CPU
	allocs  float64
	bytes   float64 // allocated
}

// each returns the difference to an earlier reading, divided by requests.
func (s spent) each(before spent, requests int) spent {
	n := float64(requests)
	return spent{(s.seconds - before.seconds) / n, (s.allocs - before.allocs) / n, (s.bytes - before.bytes) / n}
}

// An arena has all the processes.
type arena struct {
	*origins
	forwarder *proxy
	goproxy   *proxy
	gate      *gate
}

// origins is a process that serves at every address of loopback.
type origins struct {
	certificate        string // a file
	few, broad, secure string // ports
}

func newOrigins(b *testing.B) *origins {
	b.Helper()
	o := &origins{certificate: filepath.Join(b.TempDir(), "cert.pem")}
	writeCertificate(b, o.certificate)
	line := start(b, exec.Command(os.Args[0], o.certificate), "origin", anyLine)
	ports := strings.Fields(line)
	if len(ports) != 3 {
		b.Fatalf("the origin says %q", line)
	}
	o.few, o.broad, o.secure = ports[0], ports[1], ports[2]
	return o
}

// newArena starts all processes, the gate with this configuration.
func newArena(b *testing.B, config string) *arena {
	b.Helper()
	o := newOrigins(b)
	return &arena{
		origins: o, forwarder: startForwarder(b, "forwarder", o.certificate), goproxy: startForwarder(b, "goproxy", o.certificate),
		gate: startGate(b, o, config),
	}
}

func startForwarder(b *testing.B, role, certificate string) *proxy {
	addr := start(b, exec.Command(os.Args[0], certificate), role, anyLine)
	return &proxy{role, addr, func() (spent, error) { return readSpent("http://" + addr + spentPath) }}
}

// A gate is a proxy with an admin listener.
type gate struct {
	proxy
	admin   string
	process *os.Process
	stop    func() // ends the process and waits
}

// profileKey is the variable with the file for a CPU profile of the gate. With it the
// gate runs in this test's own binary.
const profileKey = "ROBOTSGATE_BENCH_PROFILE"

// startGate starts a gate as users do, or with a profile.
func startGate(b *testing.B, o *origins, config string) *gate {
	b.Helper()
	file := o.writeConfig(b, b.TempDir(), config)
	if os.Getenv(profileKey) != "" {
		return serving(b, exec.Command(os.Args[0], file), "gate")
	}
	return serving(b, exec.Command(buildGate(b), "serve", "-c", file), "")
}

// writeConfig writes the configuration of a gate for these origins to dir, where the
// gate keeps its data too.
func (o *origins) writeConfig(b *testing.B, dir, config string) (file string) {
	file = filepath.Join(dir, "config.yaml")
	text := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\n" +
		"egress: {allow_private: [127.0.0.0/8], ca_file: " + o.certificate + "}\n" + config
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

func buildGate(b *testing.B) (program string) {
	program = filepath.Join(b.TempDir(), "robotsgate")
	build := exec.Command("go", "build", "-o", program, "robotsgate")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// serving starts a gate with a command.
func serving(b *testing.B, cmd *exec.Cmd, role string) *gate {
	b.Helper()
	g := &gate{proxy: proxy{name: "gate"}}
	g.stop = sync.OnceFunc(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	start(b, cmd, role, func(line string) bool {
		if _, addr, ok := strings.Cut(line, " listens on http://"); ok {
			g.addr = addr
		}
		if addr, ok := strings.CutPrefix(line, "Admin: "); ok {
			g.admin = addr
		}
		return strings.HasPrefix(line, "To use it")
	})
	g.process = cmd.Process
	g.spent = func() (spent, error) { return readMetrics(g.admin + "/metrics") }
	return g
}

// metric returns a metric of the gate, summed over all labels.
func (g *gate) metric(b *testing.B, name string) float64 {
	b.Helper()
	v, err := readMetric(g.admin+"/metrics", name)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func anyLine(string) bool { return true }

// start runs a process until the benchmark ends, and returns the first line of its
// output for which ready returns true.
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
		cmd.Process.Signal(os.Interrupt) // has no effect on a process that has ended
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

// readMetrics reads the gate's use of resources from its metrics.
func readMetrics(url string) (s spent, err error) {
	all, err := sumMetrics(url)
	return spent{all["process_cpu_seconds_total"], all["go_memstats_mallocs_total"], all["go_memstats_alloc_bytes_total"]}, err
}

// readMetric returns a metric, summed over all labels.
func readMetric(url, name string) (sum float64, err error) {
	all, err := sumMetrics(url)
	if err != nil {
		return 0, err
	}
	sum, found := all[name]
	if !found {
		return 0, fmt.Errorf("%s has no %s", url, name)
	}
	return sum, nil
}

// sumMetrics returns all metrics by name, each summed over all labels. A gate looks at its whole cache for them.
func sumMetrics(url string) (all map[string]float64, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	all = map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		metric, value, _ := strings.Cut(lines.Text(), " ")
		if metric == "#" {
			continue
		}
		metric, _, _ = strings.Cut(metric, "{")
		v, err := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
		if err != nil {
			return nil, err
		}
		all[metric] += v
	}
	return all, lines.Err()
}
