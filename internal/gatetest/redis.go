package gatetest

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A RedisServer is a process of redis-server or valkey-server on loopback. Its data is in a temporary folder.
type RedisServer struct {
	Port   int
	Log    *Output
	CA     string   // file with the root of its certificate; empty: without TLS
	Client []string // options for Command beside the address, such as a password

	t       testing.TB
	program string
	dir     string
	args    []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// Redis starts a server until the test ends, with more lines of its configuration as arguments, such
// as "--requirepass", "secret". Without a program for it the test is skipped.
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t)
	r.start(append(r.plain(), args...)...)
	return r
}

// RedisTLS is as Redis, with TLS. The certificate is for 127.0.0.1.
func RedisTLS(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t)
	r.CA = filepath.Join(r.dir, "ca.pem")
	r.Client = []string{"--tls", "--cacert", r.CA}
	certificate, err := newCertificate(r.CA)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(r.dir, "key.pem")
	Write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	r.start(append([]string{"--port", "0", "--tls-port", fmt.Sprint(r.Port), "--bind", "127.0.0.1", "--dir", r.dir, "--save", "",
		"--tls-cert-file", r.CA, "--tls-key-file", key, "--tls-ca-cert-file", r.CA, "--tls-auth-clients", "no"}, args...)...)
	return r
}

// plain returns the arguments of a server without TLS, that keeps nothing on disk.
func (r *RedisServer) plain() []string {
	return []string{"--port", fmt.Sprint(r.Port), "--bind", "127.0.0.1", "--dir", r.dir, "--save", "", "--appendonly", "no"}
}

// redisPrograms are looked for in this order, each with its client.
var redisPrograms = [][2]string{{"redis-server", "redis-cli"}, {"valkey-server", "valkey-cli"}}

// redisProgram returns the paths of a server and its client.
func redisProgram(t testing.TB) (server, client string) {
	t.Helper()
	for _, names := range redisPrograms {
		server, err1 := exec.LookPath(names[0])
		client, err2 := exec.LookPath(names[1])
		if err1 == nil && err2 == nil {
			return server, client
		}
	}
	t.Skipf("neither redis-server nor valkey-server is installed")
	return "", ""
}

// newRedis returns a server that is not started.
func newRedis(t testing.TB) *RedisServer {
	t.Helper()
	program, _ := redisProgram(t)
	return &RedisServer{Port: freePort(t), t: t, program: program, dir: t.TempDir()}
}

// start starts the server until the test ends.
func (r *RedisServer) start(args ...string) {
	r.t.Helper()
	r.args = args
	r.run()
	r.t.Cleanup(r.Kill)
}

// run starts the process and waits until it listens.
func (r *RedisServer) run() {
	r.t.Helper()
	cmd, log, exited := exec.Command(r.program, r.args...), new(Output), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // killed, in most tests
		close(exited)
	}()
	r.mu.Lock()
	r.cmd, r.exited, r.Log = cmd, exited, log
	r.mu.Unlock()
	if !becomes(patience, func() bool { return r.listens() || ended(exited) }) || ended(exited) {
		r.t.Fatalf("%s does not listen:\n%s", r.program, log)
	}
}

func ended(exited chan struct{}) bool {
	select {
	case <-exited:
		return true
	default:
		return false
	}
}

func (r *RedisServer) listens() bool {
	conn, err := net.DialTimeout("tcp", r.HostPort(), time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// HostPort returns host:port.
func (r *RedisServer) HostPort() string { return fmt.Sprintf("127.0.0.1:%d", r.Port) }

// Address returns the server's address for fleet.address, without a password.
func (r *RedisServer) Address() string {
	if r.CA != "" {
		return "rediss://" + r.HostPort()
	}
	return "redis://" + r.HostPort()
}

// Kill ends the process as a power cut does.
func (r *RedisServer) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.exited
}

// Stop stops the process without ending it, so that it answers nothing, until Continue.
func (r *RedisServer) Stop() { r.signal("STOP") }

// Continue ends the effect of Stop.
func (r *RedisServer) Continue() { r.signal("CONT") }

// signal uses a shell, so that tests of other systems compile too.
func (r *RedisServer) signal(name string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if out, err := exec.Command("sh", "-c", fmt.Sprintf("kill -%s %d", name, r.cmd.Process.Pid)).CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
}

// Restart starts the process again, empty, on the same port.
func (r *RedisServer) Restart() {
	r.t.Helper()
	r.Kill()
	r.run()
}

// Command runs a command of the client and returns its output without the last line end. A failure
// of the client ends the test; an error of the server is output.
func (r *RedisServer) Command(args ...string) string {
	r.t.Helper()
	_, client := redisProgram(r.t)
	out, err := exec.Command(client, slices.Concat([]string{"-p", fmt.Sprint(r.Port)}, r.Client, args)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %s: %v\n%s", client, strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// freePort returns a port of loopback that no process listens on. The system gives none below 32768 to a client, so that
// none is taken before a server listens on it.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port between 20000 and 32000 is free")
	return 0
}
