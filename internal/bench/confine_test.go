//go:build unix

package bench

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// confinement lists what is compared: options of run.
var confinement = []struct {
	name string
	args []string
}{{"run", nil}, {"confined", []string{"--confine"}}}

// BenchmarkConfineStart reports the time from the start of robotsgate run until its command's first
// output, without confinement and with it, and the median of the differences.
func BenchmarkConfineStart(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	file := o.writeConfig(b, b.TempDir(), "")
	const turns = 41
	times := make([][]float64, len(confinement))
	added := make([]float64, turns)
	for b.Loop() {
		for turn := -1; turn < turns; turn++ { // the first makes the CA
			for i, c := range confinement {
				begun := time.Now()
				r := runCommand(b, program, file, c.args, "echo")
				took := time.Since(begun).Seconds() * 1e3
				r.end(b)
				if turn < 0 {
					continue
				}
				times[i] = append(times[i], took)
				if i > 0 {
					added[turn] = took - times[0][turn]
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(added), "added-ms")
	for i, c := range confinement {
		b.ReportMetric(median(times[i]), c.name+"-ms")
	}
}

// BenchmarkConfineMemory reports the resident memory of all processes of robotsgate run, and the
// difference. Pages that two processes share count twice.
func BenchmarkConfineMemory(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	file := o.writeConfig(b, b.TempDir(), "")
	var resident [2][]float64
	for b.Loop() {
		for range gates {
			for i, c := range confinement {
				r := runCommand(b, program, file, c.args, "sh", "-c", "sleep 0.5; echo; exec sleep 1") // the beginning needs more
				resident[i] = append(resident[i], r.resident(b)/(1<<20))
				r.end(b)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(resident[0]), "run-MiB")
	b.ReportMetric(median(resident[1]), "confined-MiB")
	b.ReportMetric(median(resident[1])-median(resident[0]), "added-MiB")
}

// BenchmarkConfineThroughput compares the requests per second of a client inside with those of the same
// client without confinement: by the variables, and by connections that reach the gate without them.
func BenchmarkConfineThroughput(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	file := o.writeConfig(b, b.TempDir(), "")
	ports := []string{"--confine", "--ports", o.few}
	few := "127.0.0.2:" + o.few
	for _, c := range []struct{ name, unconfined, confined string }{
		{"variables-1KiB", "plain /1k", "plain /1k"},
		{"variables-1MiB", "plain /1m", "plain /1m"},
		{"transparent-1KiB", "plain /1k", "direct /1k"},
		{"transparent-1MiB", "plain /1m", "direct /1m"},
	} {
		b.Run(c.name, func(b *testing.B) {
			ratios := make([]float64, 9)
			var outside, inside float64
			for b.Loop() {
				for i := range ratios {
					outside = perSecond(b, program, file, nil, c.unconfined, few)
					inside = perSecond(b, program, file, ports, c.confined, few)
					ratios[i] = inside / outside
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(outside, "run/s")
			b.ReportMetric(inside, "confined/s")
		})
	}
}

// perSecond runs the client behind a gate of its own.
func perSecond(b *testing.B, program, file string, options []string, load, host string) float64 {
	b.Helper()
	r := runCommand(b, program, file, options, "env", append([]string{roleKey + "=client", os.Args[0], host}, strings.Fields(load)...)...)
	rate, err := strconv.ParseFloat(r.first, 64)
	if err != nil {
		b.Fatalf("the client says %q: %v", r.first, err)
	}
	r.end(b)
	return rate
}

// measureClient is the client: it prints its requests per second. A direct one connects to the host
// itself.
func measureClient(host, how, path string) error {
	proxy := strings.TrimPrefix(os.Getenv("http_proxy"), "http://")
	l := plain(http.StatusOK, same("http://"+host+path))
	if how == "direct" {
		head := inside(host, path)
		l.open = func(string, int) (asker, error) {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				return nil, err
			}
			return &kept{conn, bufio.NewReaderSize(conn, 32<<10), func(int) []byte { return head }, http.StatusOK}, nil
		}
	}
	if _, err := l.run(proxy, aTurn); err != nil { // warms up
		return err
	}
	r, err := l.run(proxy, aLongTurn)
	if err != nil {
		return err
	}
	_, err = fmt.Println(r.perSecond)
	return err
}

// A running is robotsgate run with a command that has written its first line.
type running struct {
	cmd   *exec.Cmd
	first string
}

func runCommand(b *testing.B, program, file string, options []string, command string, args ...string) *running {
	b.Helper()
	all := append([]string{"run", "-c", file, "--quiet"}, options...)
	cmd := exec.Command(program, append(append(all, "--", command), args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("%v: %v", cmd, err)
	}
	return &running{cmd, strings.TrimSpace(first)}
}

// end waits for the end.
func (r *running) end(b *testing.B) {
	b.Helper()
	if err := r.cmd.Wait(); err != nil {
		b.Fatalf("%v: %v", r.cmd, err)
	}
}

// resident returns the memory of the process and its children that run the same program.
func (r *running) resident(b *testing.B) (bytes float64) {
	b.Helper()
	pid := r.cmd.Process.Pid
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		b.Fatal(err)
	}
	pids := []string{strconv.Itoa(pid)}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		children, _ := os.ReadFile(file)
		pids = append(pids, strings.Fields(string(children))...)
	}
	for _, pid := range pids {
		if exe, err := os.Readlink("/proc/" + pid + "/exe"); err != nil || exe != own {
			continue
		}
		text, err := os.ReadFile("/proc/" + pid + "/statm")
		var size, pages float64
		if _, serr := fmt.Sscan(string(text), &size, &pages); cmp.Or(err, serr) != nil {
			b.Fatal(cmp.Or(err, serr))
		}
		bytes += pages * float64(syscall.Getpagesize())
	}
	return bytes
}
