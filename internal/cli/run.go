package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/record"
	"robotsgate/internal/requestlog"
	"robotsgate/proxy"
)

// Run runs one command behind a gate of its own.
type Run struct {
	Configured
	RequestLines
	Pacing
	Token           *string `placeholder:"T" help:"Product token that the command's requests obey."`
	UserAgent       *string `placeholder:"UA" help:"User-Agent of the command's requests, in place of its own; not with crawlers in FILE."`
	RequireRequests bool    `help:"End with status 125 if CMD ends with 0 and no request came through the gate."`
	Confinement
	Command []string `arg:"" optional:"" passthrough:"" name:"CMD" help:"The command and its arguments, after --."`
}

// Run starts a gate on free loopback ports, runs the command with the variables that lead
// to the gate, and returns the command's exit status.
func (r *Run) Run(ctx context.Context, s console.Streams) error {
	command, err := r.command("run")
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return errors.New("which command? robotsgate run -- curl https://example.com/")
	}
	c, err := r.load()
	if err != nil {
		return err
	}
	if err := r.adapt(c, os.Getenv); err != nil {
		return err
	}
	return r.behind(ctx, s, c, command, nil, nil)
}

// command returns the command without the -- before it. A misspelt option of run or demo, which kong
// takes for the command, is an error.
func (r *Run) command(name string) ([]string, error) {
	switch {
	case len(r.Command) == 0:
		return nil, nil
	case r.Command[0] == "--":
		return r.Command[1:], nil
	case strings.HasPrefix(r.Command[0], "-"):
		return nil, fmt.Errorf("unknown flag %s; robotsgate %s --help shows what there is, and -- begins the command", r.Command[0], name)
	}
	return r.Command, nil
}

// A starter runs a command behind a gate, and returns its exit status and why it may have sent no request.
type starter func(ctx context.Context, s console.Streams, c *gate.Config, o gate.Options, command []string) (status int, causes []string, err error)

// behind runs a command behind a gate with the configuration c. Wrap is for [gate.Options]. A start of nil is that of the
// options.
func (r *Run) behind(ctx context.Context, s console.Streams, c *gate.Config, command []string, wrap func(proxy.Upstream) proxy.Upstream, start starter) error {
	for _, w := range c.Warnings() {
		s.Warn("%s", w)
	}
	requests := summary{hosts: map[string]bool{}}
	screen := requestlog.NewScreen(s.Err, "robotsgate: ")
	o := gate.Options{
		Out: s.Err, Err: s.Err, Version: version(), Commit: commit(),
		Requests: r.on(screen), Screen: screen, Observe: requests.count, Wrap: wrap,
	}
	switch {
	case r.Confine:
		start = r.confined
	case r.given():
		return errors.New("--reach, --ports and --keep-fd need --confine")
	case start == nil:
		start = beside
	}
	status, causes, err := start(ctx, s, c, o, command)
	if err != nil {
		return err
	}
	s.Note("%s", requests.String())
	if requests.requests == 0 {
		if requests.givenUp {
			causes = []string{"no request came through the gate, but connections came and were given up before one: a client that gives up the TLS handshake usually does not trust the CA, which the file in SSL_CERT_FILE has; robotsgate doctor says what it needs"}
		}
		for _, line := range causes {
			s.Note("%s", line)
		}
		if r.RequireRequests && status == 0 {
			return console.Exit(125)
		}
	}
	if status != 0 {
		return console.Exit(status)
	}
	return nil
}

// beside is the [starter] of a command with the variables that lead to a gate.
func beside(ctx context.Context, s console.Streams, c *gate.Config, o gate.Options, command []string) (status int, causes []string, err error) {
	g, err := gate.New(c, o)
	if err != nil {
		return 0, nil, err
	}
	stop := serving(ctx, g)
	status, err = execute(command, commandVars(g), s)
	if err := errors.Join(err, stop()); err != nil {
		return 0, nil, err
	}
	return status, noRequests(status), nil
}

// noRequests returns lines on why a command that ended with a status may have sent no request through the gate.
func noRequests(status int) []string {
	if status != 0 {
		return []string{fmt.Sprintf("no request came through the gate: the command ended with status %d, perhaps before it sent any; if it sent some, robotsgate doctor says why they went around the gate", status)}
	}
	return []string{
		"no request came through the gate: if the command sent any, they went around it. Likely causes:",
		"  - no_proxy: requests to localhost, 127.0.0.1 and ::1 never use the gate",
		"  - a client that has a proxy setting of its own, or ignores the variables, as Java does, and Node before 22.21 and 24.5",
		"robotsgate doctor checks the variables; on Linux, run --confine leaves the command no way around",
	}
}

// serving runs a gate until the returned function is called, which returns the gate's error.
func serving(ctx context.Context, g *gate.Gate) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// commandVars returns the variables for a command behind a gate of run.
func commandVars(g *gate.Gate) clientenv.Variables {
	vars := clientenv.For("http://"+g.Address(), g.ClientFiles())
	return append(vars,
		clientenv.Variable{Name: "ROBOTSGATE_ADMIN", Value: "http://" + g.AdminAddress()},
		clientenv.Variable{Name: "ROBOTSGATE_SPKI", Value: spki(g)})
}

// spki returns the SHA-256 of the CA's public key, by which Chromium can trust it.
func spki(g *gate.Gate) string {
	key := sha256.Sum256(g.Authority().Certificate().RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(key[:])
}

// adapt changes the settings that run has its own rules for.
func (r *Run) adapt(c *gate.Config, getenv func(string) string) error {
	c.Listen, c.Admin.Listen, c.ListenTransparent = "127.0.0.1:0", "127.0.0.1:0", ""
	c.Limits.ShutdownDelay = 0
	if r.UserAgent != nil {
		if err := c.SetUserAgent(*r.UserAgent); err != nil {
			return fmt.Errorf("--user-agent: %w", err)
		}
	}
	c.Admit() // the command has no login
	if c.Log.Level < slog.LevelWarn {
		c.Log.Level = slog.LevelWarn // the command uses the terminal
	}
	if r.Token != nil {
		if err := c.SetProductToken(*r.Token); err != nil {
			return fmt.Errorf("--token: %w", err)
		}
	}
	r.apply(c)
	name := proxyVariable(getenv)
	if c.Egress.Parent != nil || name == "" {
		return nil
	}
	text := getenv(name)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	if rest, ok := strings.CutPrefix(text, "socks5h://"); ok {
		text = "socks5://" + rest // names are always resolved by the proxy
	}
	parent, err := url.Parse(text)
	if err != nil {
		parent = &url.URL{} // the error repeats the text, which may hold a password
	}
	if err := proxy.CheckParent(parent); err != nil {
		return fmt.Errorf("the environment variable %s: %w", name, err)
	}
	c.Egress.Parent = parent
	return trustParent(c, getenv("SSL_CERT_FILE"))
}

// proxyVariable returns the variable that names the parent proxy, the first of those that are set; "": none is.
func proxyVariable(getenv func(string) string) string {
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"} {
		if getenv(name) != "" {
			return name
		}
	}
	return ""
}

// trustParent also trusts the CA in file. A parent proxy may sign certificates for origins,
// as a gate does.
func trustParent(c *gate.Config, file string) error {
	if file == "" || c.Egress.CAFile != "" {
		return nil
	}
	if _, err := gate.RootsWith(file); err != nil {
		return fmt.Errorf("the environment variable SSL_CERT_FILE: %w; unset it, or name a PEM file", err)
	}
	c.Egress.CAFile = file
	return nil
}

// execute runs the command and returns its exit status, as a shell does.
func execute(command []string, vars clientenv.Variables, s console.Streams) (status int, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	cmd.Env = append(os.Environ(), vars.Environ()...)
	// A terminal sends SIGINT to the command, too. It decides what to do, and this process
	// ends when the command does. Other signals are passed on.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer func() {
		signal.Stop(signals)
		close(signals)
	}()
	if err := cmd.Start(); err != nil {
		return 0, notStarted(s, command[0], err)
	}
	go func() {
		for sig := range signals {
			if sig != syscall.SIGINT {
				_ = cmd.Process.Signal(sig)
			}
		}
	}()
	err = cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, nil
	case !ok:
		return 0, fmt.Errorf("%s: %w", command[0], err)
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// notStarted prints why a command can't be run, and returns a shell's exit status for it.
func notStarted(s console.Streams, name string, err error) console.Exit {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		s.Status(fmt.Errorf("%s: command not found", name))
		return 127
	}
	s.Status(fmt.Errorf("%s can't be executed: %w", name, err))
	return 126
}

// maxHosts bounds the hosts that a summary distinguishes.
const maxHosts = 100_000

// A summary counts the requests of run's command.
type summary struct {
	mu       sync.Mutex
	requests int
	denied   int
	reported int // that would be denied
	hosts    map[string]bool
	givenUp  bool // a client gave up a connection before its first request
}

// count counts a request that is over.
func (c *summary) count(x *record.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.Unused != "" {
		c.givenUp = true
		return
	}
	c.requests++
	switch {
	case x.Denied():
		c.denied++
	case x.Kind() != "":
		c.reported++
	}
	if _, host, ok := strings.Cut(x.Origin, "://"); ok && len(c.hosts) < maxHosts {
		c.hosts[host] = true
	}
}

// String returns the counts in one line.
func (c *summary) String() string {
	text := fmt.Sprintf("%s, %d denied", console.Plural(c.requests, "request"), c.denied)
	if c.reported > 0 {
		text += fmt.Sprintf(", %d would be denied", c.reported)
	}
	return text + ", " + console.Plural(len(c.hosts), "host")
}
