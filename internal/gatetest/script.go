package gatetest

import (
	"bytes"
	"compress/gzip"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Params are the parameters of the scripts in dir. They can use these commands too:
//
//	origin DIR           serve DIR at http://$ORIGIN and https://$ORIGIN_TLS; log requests
//	                     to origin.log, write its certificate to origin-ca.pem. FILE.headers has the
//	                     status and headers of FILE. http://$ORIGIN is also a proxy that
//	                     resolves every name to the origin.
//	serve NAME ARG...    run robotsgate serve ARG... in the background and wait until it
//	                     listens. Its URL is $NAME (host and port: $NAME_AT; with TLS:
//	                     $NAME_TLS), its admin listener $NAME_ADMIN, its CA $NAME_CA, its
//	                     output NAME.out and NAME.err.
//	terminate NAME       send SIGTERM and wait for the end; the exit status must be 0
//	signal NAME          send SIGTERM and go on
//	ended NAME           wait for the end; the exit status must be 0
//	hangup NAME          send SIGHUP
//	kill9 NAME           send SIGKILL and wait for the end
//	get ARG... URL       request URL through $GATE, or the proxy given with -x ("": none);
//	                     print status, headers and body. For TLS, the CA in $GATE_CA is
//	                     trusted, which serve sets for NAME=GATE.
//	flood N URL          send N such requests at once; each must receive 200
//	waitfor FILE REGEXP  wait until FILE matches
//	until REGEXP ARG...  run the command ARG... until its output matches
//	pass DURATION        wait
//	gzip FILE FILE       compress the first file to the second
//	occupy NAME          listen on a port and set $NAME to its host:port
func Params(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Values[gatesKey{}] = map[string]*Gate{}
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]command{
			"origin":    takes(1, cmdOrigin),
			"serve":     takes(1, cmdServe),
			"terminate": onGate((*Gate).Terminate),
			"signal":    onGate(func(g *Gate) error { return g.Signal(syscall.SIGTERM) }),
			"ended":     onGate((*Gate).Ended),
			"hangup":    onGate(func(g *Gate) error { return g.Signal(syscall.SIGHUP) }),
			"kill9":     onGate(func(g *Gate) error { _ = g.Kill(); return nil }), // a killed process has failed
			"get":       cmdGet,
			"flood":     takes(2, cmdFlood),
			"waitfor":   takes(2, cmdWaitfor),
			"until":     takes(2, cmdUntil),
			"pass":      takes(1, cmdPass),
			"gzip":      takes(2, cmdGzip),
			"occupy":    takes(1, cmdOccupy),
		},
	}
}

type command = func(ts *testscript.TestScript, neg bool, args []string)

type gatesKey struct{} // key of a script's running gates by name

// takes is a command with n arguments or more. It can't be negated.
func takes(n int, run func(ts *testscript.TestScript, args []string)) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < n {
			ts.Fatalf("this command takes %d arguments, and no !: see gatetest.Params", n)
		}
		run(ts, args)
	}
}

func cmdOrigin(ts *testscript.TestScript, args []string) {
	o, err := StartOrigin(ts.MkAbs(args[0]), ts.MkAbs("origin.log"), ts.MkAbs("origin-ca.pem"))
	ts.Check(err)
	ts.Defer(o.Close)
	ts.Setenv("ORIGIN", o.HTTP)
	ts.Setenv("ORIGIN_TLS", o.HTTPS)
}

func cmdServe(ts *testscript.TestScript, args []string) {
	name := args[0]
	out, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	errs, err := os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	program, err := exec.LookPath("robotsgate")
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"serve"}, args[1:]...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	g, err := StartGate(cmd, out, errs)
	if err != nil {
		ts.Fatalf("%v\n%s%s", err, ts.ReadFile(name+".out"), ts.ReadFile(name+".err"))
	}
	ts.Defer(func() { g.Kill(); out.Close(); errs.Close() })
	ts.Value(gatesKey{}).(map[string]*Gate)[name] = g
	ts.Setenv(name, g.Proxy)
	ts.Setenv(name+"_AT", strings.TrimPrefix(g.Proxy, "http://"))
	ts.Setenv(name+"_TLS", strings.Replace(g.Proxy, "http://", "https://", 1))
	ts.Setenv(name+"_ADMIN", g.Admin)
	ts.Setenv(name+"_CA", g.CA)
}

// environ returns the variables of the script that the gate receives.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_DATA_HOME", "SSL_CERT_FILE", "ORIGIN", "ORIGIN_TLS", "OTHER", "GOCOVERDIR", "GORACE"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// onGate is a command for the gate that its argument names.
func onGate(do func(*Gate) error) command {
	return takes(1, func(ts *testscript.TestScript, args []string) {
		g := ts.Value(gatesKey{}).(map[string]*Gate)[args[0]]
		if g == nil {
			ts.Fatalf("serve has started no gate %s", args[0])
		}
		if err := do(g); err != nil {
			ts.Fatalf("%s: %v\n%s", args[0], err, ts.ReadFile(args[0]+".err"))
		}
	})
}

func cmdFlood(ts *testscript.TestScript, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	l := Load{Proxy: ts.Getenv("GATE"), URLs: args[1:2]}
	ts.Check(l.Run(n, func(*http.Response) bool { return false }))
}

func cmdWaitfor(ts *testscript.TestScript, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var data []byte
	if !becomes(patience, func() bool {
		data, _ = os.ReadFile(ts.MkAbs(args[0])) // it may not exist yet
		return pattern.Match(data)
	}) {
		ts.Fatalf("%s did not match %q within 30 s:\n%s", args[0], args[1], data)
	}
}

func cmdUntil(ts *testscript.TestScript, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	if !becomes(patience, func() bool {
		err = ts.Exec(args[1], args[2:]...)
		return pattern.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("the output of %q did not match %q within 30 s: %v", args[1:], args[0], err)
	}
}

func cmdPass(ts *testscript.TestScript, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	<-time.After(d)
}

func cmdGzip(ts *testscript.TestScript, args []string) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(ts.ReadFile(args[0])))
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o644))
}

func cmdOccupy(ts *testscript.TestScript, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}
