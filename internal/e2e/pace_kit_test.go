package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestPaceKit sends the requests of kitCases with real clients, through gates with a pace, to origins
// that record when each arrives. Most cases wait most of the time, so that many run together.
func TestPaceKit(t *testing.T) {
	longWithoutRace(t)
	kit := &paceKit{gates: map[string]*kitGate{}, node: exec.Command(node(), "testdata/clients/fetch.cjs").Run() == nil}
	for _, name := range slices.Sorted(maps.Keys(kitGates)) {
		kit.gates[name] = newKitGate(t, name)
	}
	longest := measureStalls()
	running := make(chan struct{}, 12)
	results := make([]chan *kitRun, len(kitCases))
	for i := range kitCases {
		results[i] = make(chan *kitRun, 1)
		go func() {
			running <- struct{}{}
			defer func() { <-running }()
			results[i] <- kit.run(t.Context(), &kitCases[i])
		}()
	}
	var runs []*kitRun
	for _, result := range results {
		runs = append(runs, <-result)
	}
	stall := longest()
	t.Logf("%d cases; a goroutine of this process waited for the processor for at most %v", len(kitCases), stall)
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			if r.skip {
				t.Skip("Node is not installed, or too old: npm has it")
			}
			problems := r.check(stall)
			if len(problems) == 0 {
				return
			}
			// The machine may have been busy, with the other cases too: the case runs again, alone.
			t.Logf("at first %s", strings.Join(problems, "\n"))
			kit.gates[r.kitCase.gate] = newKitGate(t, r.kitCase.gate)
			longest := measureStalls()
			r = kit.run(t.Context(), r.kitCase)
			for _, problem := range r.check(longest()) {
				t.Error(problem)
			}
		})
	}
}

// A kitCase is a number of commands, what each must print, and when the origin must have received the
// requests.
//
// In a command the first word is a client, or one of the words of [kitRun.command]; URL and TLS stand for
// the case's origin. "get /a" is curl for this path, whose answer must be the page. After => there are texts
// that the output must have, or must not have after a "!": three digits are the status, and ~1.0 is about
// that number. With a "&" in front the command goes on while the next ones run.
//
// Arrivals are the paths that the origin receives, in order, each with the seconds since the one before.
type kitCase struct {
	name     string
	gate     string // of kitGates
	robots   string // "" is a Crawl-delay of 1 s for all crawlers
	answers  map[string]kitAnswer
	do       []string
	arrivals string
}

// A kitAnswer is what the origin answers for a path. Others have 200.
type kitAnswer struct {
	status     int
	retryAfter string
	retryDate  time.Duration // a date in Retry-After, so far from the answer's own
	clock      time.Duration // by how much the origin's clock is wrong
	takes      time.Duration
}

// A kitGate is a gate that many cases share.
type kitGate struct {
	*gatetest.Gate
	dir string
	mu  sync.Mutex // of all that follows
	at  time.Time  // when waiting was read
	got map[string]int
}

func newKitGate(t *testing.T, name string) *kitGate {
	t.Helper()
	dir := t.TempDir()
	server := httptest.NewTLSServer(nil) // for its certificate, which is that of all
	defer server.Close()
	gatetest.Write(t, filepath.Join(dir, "origin.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return &kitGate{Gate: gatetest.Serve(t, dir, kitConfig(kitGates[name])), dir: dir}
}

// kitConfig returns a configuration with these settings.
func kitConfig(settings string) string {
	return "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\nlog: {audit: audit.jsonl}\n" +
		"egress: {allow_private: [127.0.0.0/8], ca_file: origin.pem}\n" +
		"crawlers:\n- {name: one, user_agents: [One*]}\n- {name: two, user_agents: [Two*]}\n" +
		"- {name: tokens, user_agents: [Tokens*], product_tokens: [FirstBot, SecondBot]}\n- {name: other}\n" + settings + "\n"
}

// waiting returns how many requests wait for an origin.
func (g *kitGate) waiting(origin string) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.at) > 20*time.Millisecond {
		g.at, g.got = time.Now(), map[string]int{}
		resp, err := http.Get(g.Admin + "/api/overview")
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		var overview struct {
			Queues []struct {
				Origin  string
				Waiting int
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&overview); err != nil {
			return 0, err
		}
		for _, q := range overview.Queues {
			g.got[q.Origin] = q.Waiting
		}
	}
	return g.got[origin], nil
}

type paceKit struct {
	gates map[string]*kitGate
	node  bool // is installed
}

// A kitRun is a case that runs.
type kitRun struct {
	*kitCase
	gate       *kitGate
	skip       bool
	plain, tls *httptest.Server

	mu       sync.Mutex
	arrived  []arrival
	commands []*kitCommand
}

type kitCommand struct {
	text, want string
	output     string
	over       chan struct{} // closed when output is set
}

func (k *paceKit) run(ctx context.Context, c *kitCase) *kitRun {
	r := &kitRun{kitCase: c, gate: k.gates[c.gate]}
	if r.skip = !k.node && slices.ContainsFunc(c.do, func(s string) bool { return strings.Contains(s, "node ") }); r.skip {
		return r
	}
	r.plain, r.tls = httptest.NewServer(r), httptest.NewUnstartedServer(r)
	r.tls.EnableHTTP2 = true
	r.tls.StartTLS()
	defer r.plain.Close()
	defer r.tls.Close()
	for _, line := range c.do {
		line, want, _ := strings.Cut(line, "=>")
		line, background := strings.CutPrefix(line, "& ")
		if path, ok := strings.CutPrefix(line, "get "); ok {
			line, want = "curl URL"+path, cmp.Or(want, "200")+" | HTTP/1.1 200 "
		}
		command := &kitCommand{text: strings.TrimSpace(line), want: strings.TrimSpace(want), over: make(chan struct{})}
		before := r.begun()
		r.commands = append(r.commands, command)
		go func() {
			defer close(command.over)
			command.output = r.command(ctx, command.text)
		}()
		for background && r.begun() == before && !command.ended() {
			time.Sleep(20 * time.Millisecond) // real time: the clients are
		}
		if !background {
			<-command.over
		}
	}
	for _, command := range r.commands {
		<-command.over
	}
	return r
}

func (c *kitCommand) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// begun returns how many requests of the case have arrived or wait. A request that starts meanwhile is
// not counted twice.
func (r *kitRun) begun() int {
	r.mu.Lock()
	n := len(r.arrived)
	r.mu.Unlock()
	for _, server := range []*httptest.Server{r.plain, r.tls} {
		waiting, _ := r.gate.waiting(server.URL)
		n += waiting
	}
	return n
}

// ServeHTTP is the origin.
func (r *kitRun) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := r.answers[req.URL.Path]
	now := time.Now()
	if req.URL.Path != "/robots.txt" {
		r.mu.Lock()
		r.arrived = append(r.arrived, arrival{now, req.URL.Path, req.UserAgent()})
		r.mu.Unlock()
	}
	time.Sleep(a.takes) // real time: the clients are
	body, _ := io.ReadAll(req.Body)
	h := w.Header()
	if a.retryAfter != "" {
		h.Set("Retry-After", a.retryAfter)
	}
	if theirs := now.Add(a.clock).UTC(); a.retryDate != 0 {
		h.Set("Date", theirs.Format(http.TimeFormat))
		h.Set("Retry-After", theirs.Add(a.retryDate).Format(http.TimeFormat))
	}
	switch {
	case a.status != 0:
		w.WriteHeader(a.status)
	case req.URL.Path == "/robots.txt":
		robots := r.robots
		if robots == "" {
			robots = "User-agent: *\nCrawl-delay: 1\n"
		}
		io.WriteString(w, robots)
	case req.Header.Get("Upgrade") == "websocket":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nupgraded\n")
			conn.Close()
		}
	default:
		fmt.Fprintf(w, "page, %d bytes received", len(body))
	}
}

// command runs a command and returns what it prints.
func (r *kitRun) command(ctx context.Context, text string) string {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "pass":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err.Error()
		}
		time.Sleep(d) // real time: the clients are
		return "passed"
	case "wait": // for the commands before
		for _, c := range r.commands[:len(r.commands)-1] {
			<-c.over
		}
		return ""
	case "admin": // GET of a path of the admin listener
		return get(r.gate.Admin + rest)
	case "queue": // of the case's origin, as the API shows it
		return r.queue()
	case "audit": // the record of a path
		return r.audited(rest)
	case "reload":
		os.WriteFile(filepath.Join(r.gate.dir, "gate.yaml"), []byte(kitConfig(rest)), 0o600)
		r.gate.Signal(syscall.SIGHUP)
		return fmt.Sprint(r.gate.Log.Has("has been reloaded", 1))
	case "refresh": // the gate fetches robots.txt
		resp, err := http.Post(r.gate.Admin+"/api/refresh?origin="+url.QueryEscape(r.plain.URL), "", nil)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		return resp.Status
	case "terminate":
		return fmt.Sprint(r.gate.Signal(syscall.SIGTERM) == nil)
	}
	command := strings.NewReplacer("URL/", r.plain.URL+"/", "TLS/", r.tls.URL+"/").Replace(rest)
	switch word {
	case "curl":
		command = "curl -s -i --suppress-connect-headers --max-time 30 " + command
	case "httpx", "requests":
		command = "/usr/bin/python3 testdata/clients/" + map[string]string{"httpx": "get_httpx.py", "requests": "get.py"}[word] + " " + command
	case "scrapy":
		command = "scrapy runspider -s ROBOTSTXT_OBEY=False -L ERROR -a url=" + command + " testdata/clients/spider.py"
	case "node":
		command = node() + " testdata/clients/fetch.cjs " + command
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(cmd.Environ(), "http_proxy="+r.gate.Proxy, "https_proxy="+r.gate.Proxy, "no_proxy=", "NO_PROXY=", "NODE_USE_ENV_PROXY=1", "PYTHONDONTWRITEBYTECODE=1",
		"CURL_CA_BUNDLE="+r.gate.CA, "SSL_CERT_FILE="+r.gate.CA, "REQUESTS_CA_BUNDLE="+r.gate.CA, "NODE_EXTRA_CA_CERTS="+r.gate.CA)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s\n%v", out, err)
	}
	return string(out)
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// queue returns the entry of the case's origin in /api/overview.
func (r *kitRun) queue() string {
	var overview struct{ Queues []map[string]any }
	if err := json.Unmarshal([]byte(get(r.gate.Admin+"/api/overview")), &overview); err != nil {
		return err.Error()
	}
	for _, q := range overview.Queues {
		if q["origin"] == r.plain.URL {
			return fmt.Sprintf("waiting %v, longest %v", q["waiting"], q["longest"])
		}
	}
	return "no queue"
}

// audited returns the record of a request to the case's origin, as soon as it is written.
func (r *kitRun) audited(path string) string {
	for range 100 {
		data, err := os.ReadFile(filepath.Join(r.gate.dir, "audit.jsonl"))
		if err != nil {
			return err.Error()
		}
		for line := range bytes.Lines(data) {
			text := string(line)
			if strings.Contains(text, `"path":"`+path+`"`) && (strings.Contains(text, r.plain.URL+`"`) || strings.Contains(text, r.tls.URL+`"`)) {
				return text
			}
		}
		time.Sleep(50 * time.Millisecond) // real time: the gate is another process
	}
	return "no record"
}

// tolerance is by how many seconds a time may be off, beside what the machine has added.
const tolerance = 0.6

// check compares the outputs and the arrivals with what is wanted of them, and returns the differences.
func (r *kitRun) check(stall time.Duration) (problems []string) {
	slack := tolerance + stall.Seconds()
	for _, c := range r.commands {
		for want := range strings.SplitSeq(c.want, " | ") {
			want = strings.ReplaceAll(want, "URL", r.plain.URL)
			if want != "" && !matches(c.output, want, slack) {
				problems = append(problems, fmt.Sprintf("%s\nprinted\n%s\nwant %s", c.text, c.output, want))
			}
		}
	}
	var got []string
	for i, a := range r.arrived {
		since := 0.0
		if i > 0 {
			since = a.at.Sub(r.arrived[i-1].at).Seconds()
		}
		got = append(got, fmt.Sprintf("%s+%.3f", a.path, since))
	}
	wants := strings.Fields(r.arrivals)
	same := len(wants) == len(got)
	for i := 0; same && i < len(got); i++ {
		path, seconds, timed := strings.Cut(wants[i], "+")
		gotPath, gotSeconds, _ := strings.Cut(got[i], "+")
		want, _ := strconv.ParseFloat(seconds, 64)
		is, _ := strconv.ParseFloat(gotSeconds, 64)
		same = path == gotPath && (!timed || is >= want*0.98-stall.Seconds() && is <= want+slack)
	}
	if !same {
		problems = append(problems, fmt.Sprintf("the origin received\n%s\nwant\n%s", strings.Join(got, " "), strings.Join(wants, " ")))
	}
	return problems
}

// status and about are the notations of what a command must print.
var (
	status = regexp.MustCompile(`^\d{3}$`)
	about  = regexp.MustCompile(`~(\d+(?:\\\.\d+)?)`)
)

// matches reports whether an output has what is wanted.
func matches(output, want string, slack float64) bool {
	want, not := strings.CutPrefix(strings.TrimSpace(want), "!")
	pattern := regexp.QuoteMeta(want)
	if all := strings.TrimSuffix(strings.TrimPrefix(want, "^"), "$"); len(all) < len(want) { // a whole line
		pattern = "^" + regexp.QuoteMeta(all) + "$"
	}
	if status.MatchString(want) {
		pattern = `^(HTTP/[\d.]+|status) ` + want + `\b`
	}
	var numbers []float64
	pattern = about.ReplaceAllStringFunc(pattern, func(s string) string {
		n, _ := strconv.ParseFloat(strings.ReplaceAll(s[1:], `\`, ""), 64)
		numbers = append(numbers, n)
		return `(\d+(?:\.\d+)?)`
	})
	for _, found := range regexp.MustCompile(`(?im)`+pattern).FindAllStringSubmatch(output, -1) {
		fits := true
		for i, n := range numbers {
			is, _ := strconv.ParseFloat(found[len(found)-len(numbers)+i], 64)
			fits = fits && is >= n-slack && is <= n*1.1+slack
		}
		if fits {
			return !not
		}
	}
	return not
}
