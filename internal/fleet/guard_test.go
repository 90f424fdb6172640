package fleet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	testMaxValue  = 1000
	testMaxAnswer = 5000
)

func always() bool { return true }

func scanAll(data string) (respScanner, int, error) {
	s := respScanner{maxValue: testMaxValue, maxMessage: testMaxAnswer}
	n, err := s.scan([]byte(data), always)
	return s, n, err
}

func TestScannerPasses(t *testing.T) {
	for data, messages := range map[string]uint64{
		"":                                     0,
		"+OK\r\n":                              1,
		"+\r\n":                                1,
		"-ERR no\r\n:1\r\n":                    2,
		":-9223372036854775808\r\n":            1,
		"$0\r\n\r\n":                           1,
		"$-1\r\n*-1\r\n_\r\n":                  3,
		"$5\r\na\r\nb\n\r\n":                   1,
		"*0\r\n%0\r\n":                         2,
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n#t\r\n":  2,
		"%1\r\n+a\r\n*2\r\n,1.5\r\n_\r\n":      1,
		"=7\r\ntxt:abc\r\n":                    1,
		strings.Repeat("*1\r\n", 8) + ":1\r\n": 1,
		"$1000\r\n" + strings.Repeat("x", 1000) + "\r\n+" + strings.Repeat("x", 4000) + "\r\n": 2,
	} {
		s, n, err := scanAll(data)
		if err != nil || n != len(data) || s.messages != messages || s.state != respKind || s.depth != 0 {
			t.Errorf("%.50q: got %d messages in %d bytes, %v, want %d in %d", data, s.messages, n, err, messages, len(data))
		}
	}
}

// TestScannerStops: each input ends with the first byte that is not good.
func TestScannerStops(t *testing.T) {
	for _, data := range []string{
		"x", "\r", "\n", ">", "|", "!", ".", ";", "\x00",
		"$?", "*?", "$+", "$-2", "*-2", "%-", "~-", "=-", "$-10", "$--", "$1-", "$\r", "$-\r", ":\r", ":-\r", ":1.", ":a", "$1\n", "$1\rx", "$-0\r",
		"$1001", "$99", // see below
		"$1\r\nab", "$1\r\na\n", "$1\r\na\rx", "$0\r\na",
		"+a\n", "+a\rb", "#tt", "#\r", "_x",
		"*65537", "*99999", "%65537", "%40000\r",
		"*6\r\n" + strings.Repeat("$900\r\n"+strings.Repeat("x", 900)+"\r\n", 5) + "$900\r",
		"*2\r\n*60000\r\n" + strings.Repeat(":1\r\n", 1) + "*60000\r",
		strings.Repeat("*1\r\n", 8) + "*1\r",
		"+" + strings.Repeat("x", maxRESPLine+1),
		"+" + strings.Repeat("x", testMaxAnswer+1) + "\r\n",
		":" + strings.Repeat("1", 21),
	} {
		if data == "$99" {
			data = "$9999"
		}
		_, n, err := scanAll(data + "x")
		if err == nil || n != len(data)-1 {
			t.Errorf("%.50q: got %d good bytes, %v, want %d", data, n, err, len(data)-1)
		}
	}
}

// readMessage reads a message as rueidis does: it trusts lengths, and allocates what they say. It
// fails if that is over a bound.
func readMessage(r *bufio.Reader, depth int, elements *int64) error {
	if depth > maxRESPDepth {
		return errors.New("too deep")
	}
	kind, err := r.ReadByte()
	if err != nil {
		return io.EOF
	}
	if kind == '_' || kind == '#' {
		skip := map[byte]int{'_': 2, '#': 3}[kind]
		_, err := io.CopyN(io.Discard, r, int64(skip))
		return err
	}
	line, err := r.ReadString('\n')
	if err != nil {
		return io.EOF
	}
	if strings.IndexByte("+-,(", kind) >= 0 {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(line, "\r\n"), 10, 64)
	switch {
	case kind == ':' || n == -1 && (kind == '$' || kind == '*'):
		return nil
	case err != nil || n < 0 || strings.IndexByte("$=*%~", kind) < 0:
		return fmt.Errorf("%c%q", kind, line)
	case kind == '$' || kind == '=':
		if n > testMaxValue {
			return fmt.Errorf("a value of %d bytes", n)
		}
		end := make([]byte, n+2)
		if _, err := io.ReadFull(r, end); err != nil {
			return io.EOF
		}
		if !bytes.HasSuffix(end, []byte("\r\n")) {
			return errors.New("no line end after a value")
		}
		return nil
	case kind == '%':
		n *= 2
	}
	if *elements += n; *elements > maxRESPElements {
		return fmt.Errorf("%d elements", *elements)
	}
	for range n {
		if err := readMessage(r, depth+1, elements); err != nil {
			return err
		}
	}
	return nil
}

// FuzzGuard: what the guard passes does not depend on how the stream is cut, and a reader that trusts
// lengths can read it.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n%1\r\n+a\r\n:1\r\n"), uint64(3))
	f.Add([]byte("$99999999\r\nx"), uint64(1))
	f.Add([]byte("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"), uint64(5))
	f.Add([]byte("#t\r\n_\r\n$-1\r\n*-1\r\n-MOVED\r\n"), uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, cuts uint64) {
		whole, good, err := scanAll(string(data))
		parts := respScanner{maxValue: testMaxValue, maxMessage: testMaxAnswer}
		var passed int
		var partErr error
		for rest := data; len(rest) > 0 && partErr == nil; {
			size := min(len(rest), 1+int(cuts%7))
			cuts = cuts>>3 | cuts<<61
			var n int
			n, partErr = parts.scan(rest[:size], always)
			passed, rest = passed+n, rest[size:]
		}
		if passed != good || fmt.Sprint(partErr) != fmt.Sprint(err) || parts.messages != whole.messages {
			t.Fatalf("at once %d bytes, %v; in parts %d, %v", good, err, passed, partErr)
		}
		r := bufio.NewReader(bytes.NewReader(data[:good]))
		for messages := uint64(0); ; messages++ {
			var elements int64
			if err := readMessage(r, 0, &elements); err == io.EOF {
				if messages != whole.messages {
					t.Fatalf("%d messages were counted, %d read", whole.messages, messages)
				}
				return
			} else if err != nil {
				t.Fatalf("what was passed can't be read: %v", err)
			}
		}
	})
}

// TestGuardCounts: an answer without a command is not passed.
func TestGuardCounts(t *testing.T) {
	client, srv := net.Pipe()
	defer srv.Close()
	g := newGuard(client, testMaxValue, testMaxAnswer)
	go func() {
		io.CopyN(io.Discard, srv, int64(len("*1\r\n$4\r\nPING\r\n"))) // read by the test
		srv.Write([]byte("+PONG\r\n+PONG\r\n"))
	}()
	for _, part := range []string{"*1\r\n$4\r", "\nPING\r\n"} {
		if _, err := g.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := io.ReadAll(g)
	if string(got) != "+PONG\r\n" || !errors.Is(err, errRESPUnsent) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := g.Read(make([]byte, 10)); !errors.Is(err, errRESPUnsent) {
		t.Errorf("after the error: %v", err)
	}
}

// BenchmarkGuard scans an answer with a body of 500 KiB, and one with 1,000 short values.
func BenchmarkGuard(b *testing.B) {
	for name, answer := range map[string]string{
		"body":  "*3\r\n$16\r\n1795428130004875\r\n$4\r\n1234\r\n$512000\r\n" + strings.Repeat("x", 512000) + "\r\n",
		"gates": "*1000\r\n" + strings.Repeat("$100\r\n"+strings.Repeat("x", 100)+"\r\n", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			s, data := respScanner{maxValue: 1 << 20, maxMessage: 1 << 21}, []byte(answer)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := s.scan(data, always); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// helloAnswer is what a server says at first, when it is in standalone mode.
const helloAnswer = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"

// TestHostileServer connects to servers with answers that must not end the process, nor take memory.
func TestHostileServer(t *testing.T) {
	clusterDisabled := "-ERR This instance has cluster support disabled\r\n"
	oneNode := func(host string) string {
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + host + ":%d\r\n"
	}
	for name, answers := range map[string][]string{
		"nothing":                   {""},
		"an error":                  {"-ERR no\r\n"},
		"a huge value at first":     {"$536870912\r\n"},
		"a huge list at first":      {"*1000000000\r\n"},
		"a negative map":            {"%-5\r\n"},
		"nested lists":              {strings.Repeat("*1\r\n", 100000)},
		"an endless line":           {"+" + strings.Repeat("x", 10<<20)},
		"too many answers":          {strings.Repeat("+OK\r\n", 100)},
		"pushes":                    {helloAnswer, clusterDisabled, ">2\r\n+message\r\n+x\r\n"},
		"an answer that is not one": {helloAnswer, clusterDisabled, "+OK\r\n", ":1\r\n", "_\r\n", "*0\r\n", "*3\r\n:1\r\n*0\r\n%0\r\n", "*3\r\n$1\r\n1\r\n_\r\n_\r\n"},
		"versions":                  {helloAnswer, clusterDisabled, "*3\r\n$2\r\n-1\r\n$1\r\nx\r\n_\r\n", "*3\r\n$20\r\n99999999999999999999\r\n$1\r\nx\r\n_\r\n"},
		"a value at first":          {helloAnswer, clusterDisabled, fmt.Sprintf("$%d\r\n", maxValue+1)},
		"a Cluster without address": {helloAnswer, oneNode("$0\r\n\r\n"), "-MOVED\r\n", "-ASK 1\r\n", "-MOVED  \r\n", "-CLUSTERDOWN\r\n", "-TRYAGAIN\r\n", "-REDIRECT\r\n"},
		"a Cluster of one address":  {helloAnswer, oneNode("$9\r\n127.0.0.1\r\n"), "-MOVED 1 127.0.0.1:1\r\n", "-MOVED 1 127.0.0.1:%d\r\n", "-MOVED 1 127.0.0.1:%d\r\n"},
		"wrong slots":               {helloAnswer, "*3\r\n*3\r\n:-1\r\n:99999\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n*0\r\n*3\r\n_\r\n_\r\n*1\r\n_\r\n"},
		"no slots":                  {helloAnswer, "*0\r\n", "*0\r\n"},
		"slots that are no list":    {helloAnswer, "+OK\r\n", "+OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			address := hostileServer(t, answers)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			s, err := dial(ctx, "redis://"+address, nil, "robotsgate", 100*time.Millisecond)
			if err != nil {
				return
			}
			defer s.close()
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				got, err := s.load(ctx, testName, true)
				cancel()
				if err == nil && got.version != 0 {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

// hostileServer answers each command with the next answer, in which %d is the server's port. After the
// last it repeats the last.
func hostileServer(t *testing.T, answers []string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	serve := func(conn net.Conn) {
		defer conn.Close()
		commands, buffer := respScanner{maxValue: math.MaxInt32, maxMessage: math.MaxInt64}, make([]byte, 64<<10)
		var sent uint64
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if _, err := commands.scan(buffer[:n], always); err != nil {
				return
			}
			for ; sent < commands.messages; sent++ {
				answer := answers[min(sent, uint64(len(answers)-1))]
				if _, err := io.WriteString(conn, strings.ReplaceAll(answer, ":%d", ":"+port)); err != nil {
					return
				}
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}
