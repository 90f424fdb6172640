package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/field"
	"robotsgate/internal/gate"
	"robotsgate/internal/outcomes"
	"robotsgate/internal/processes"
	"robotsgate/internal/requestlog"
	"robotsgate/policy"
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
	s = inFormat(s, c)
	own := c.Egress.Parent
	if err := r.adapt(c, os.Getenv); err != nil {
		return s.Reported(err)
	}
	if own == nil && c.Egress.Parent != nil {
		warnNoProxy(ctx, s, c.Egress.Parent)
	}
	return s.Reported(r.behind(ctx, s, c, command, nil, nil))
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
	requests := outcomes.NewCounter("host", outcomes.Host)
	ends := &outcomes.Failures{Redact: c.Log.Audit.RedactQuery}
	observe := func(x *proxy.Record) {
		requests.Count(x)
		ends.Add(x)
	}
	screen := requestlog.NewScreen(s.Err, nil, "robotsgate: ")
	o := gate.Options{
		Out: s.Err, Err: s.Err, Version: version(), Commit: commit(),
		Requests: r.on(screen), Screen: screen, Observe: observe, Wrap: wrap,
		OnOtherName: func(q policy.Request) {
			remedy := "--user-agent"
			if c.NamesAgents() {
				remedy = "user_agent in crawlers"
			}
			s.Warn("the command sends the User-Agent %q, which does not have the product token %s: sites that name the token in robots.txt can't recognize the crawler; %s sends another",
				field.Cut(q.UserAgent), strings.Join(q.Crawler.Tokens, ", "), remedy)
		},
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
	s.Note("%s", requests.Summary(false))
	var lines []string
	if !r.Quiet {
		lines = ends.Failed()
	}
	if !r.Quiet && r.choose(c, screen != nil) == requestlog.None { // else they have lines already
		lines = append(ends.Refused(), lines...)
	}
	for _, line := range lines {
		s.Note("%s", line)
	}
	if requests.None() {
		if len(ends.Failed()) > 0 { // of tunnels without a request
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
	if version := oldNode(ctx, command[0]); version != "" {
		s.Warn("%s runs with Node %s, which ignores the proxy variables, so that its requests may go around the gate: use Node 22.21, 24.5 or later, or --confine", command[0], version)
	}
	stop := serving(ctx, g)
	status, seen, err := execute(command, commandVars(g), s)
	if err := errors.Join(err, stop()); err != nil {
		return 0, nil, err
	}
	return status, processes.NoRequests(seen, status), nil
}

// oldNode returns the version of the Node that runs a program if it ignores NODE_USE_ENV_PROXY for some requests or all.
func oldNode(ctx context.Context, program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	if filepath.Base(path) != "node" {
		head := make([]byte, 128)
		if f, err := os.Open(path); err == nil {
			_, _ = f.Read(head)
			f.Close()
		}
		if line, _, _ := strings.Cut(string(head), "\n"); !strings.HasPrefix(line, "#!") || !strings.Contains(line, "node") {
			return ""
		}
		path = "node"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	version, _ := cmd.Output()
	var major, minor int
	if _, err := fmt.Sscanf(string(version), "v%d.%d", &major, &minor); err != nil || major > 24 || major == 24 && minor >= 5 || major == 22 && minor >= 21 {
		return ""
	}
	return field.Cut(strings.TrimSpace(string(version)))
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
	if err := r.apply(c); err != nil {
		return err
	}
	name := proxyVariable(getenv)
	if c.Egress.Parent != nil || name == "" {
		return nil
	}
	parent, err := field.ParseProxyVariable(getenv(name))
	if err != nil {
		return fmt.Errorf("the environment variable %s: %w", name, err) // it may hold a password
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

// warnNoProxy warns if the parent proxy of the environment does not answer. It may be a gate that has ended.
func warnNoProxy(ctx context.Context, s console.Streams, parent *url.URL) {
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080"}
	address := net.JoinHostPort(parent.Hostname(), cmp.Or(parent.Port(), ports[parent.Scheme]))
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil && ctx.Err() == nil {
		s.Warn("the environment variable %s names the proxy %s, which does not answer within 1 s, and every request goes through it: if it was a gate that has ended, unset its variables: eval \"$(robotsgate env --unset)\"", proxyVariable(os.Getenv), address)
	}
	if err == nil {
		conn.Close()
	}
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

// execute runs the command and returns its exit status, as a shell does, and the processes that were
// seen of it.
func execute(command []string, vars clientenv.Variables, s console.Streams) (status int, seen processes.Seen, err error) {
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
		return 0, seen, notStarted(s, command[0], err)
	}
	go func() {
		for sig := range signals {
			if sig != syscall.SIGINT {
				_ = cmd.Process.Signal(sig)
			}
		}
	}()
	processesSeen := processes.Watch(cmd.Process.Pid)
	err = cmd.Wait()
	seen = processesSeen()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, seen, nil
	case !ok:
		return 0, seen, fmt.Errorf("%s: %w", command[0], err)
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), seen, nil
	}
	return exit.ExitCode(), seen, nil
}

// notStarted prints why a command can't be run, and returns a shell's exit status for it.
func notStarted(s console.Streams, name string, err error) console.Exit {
	info, statErr := os.Stat(name)
	switch {
	case errors.Is(err, exec.ErrNotFound) && isYAML(name):
		s.Status(fmt.Errorf("%s: command not found; a configuration is named with -c: robotsgate run -c %s -- COMMAND", name, clientenv.QuoteShell(name)))
		return 127
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		s.Status(fmt.Errorf("%s: command not found", name))
		return 127
	case statErr == nil && info.IsDir():
		s.Status(fmt.Errorf("%s is a folder, not a command", name))
	case errors.Is(err, fs.ErrPermission):
		s.Status(fmt.Errorf("%s: this user may not execute it: chmod +x it, or name the program that reads it", name))
	default:
		s.Status(fmt.Errorf("%s: %w", name, err))
	}
	return 126
}
