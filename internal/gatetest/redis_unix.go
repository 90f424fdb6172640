//go:build unix

package gatetest

import "syscall"

// Stop stops the process without ending it, so that it answers nothing, until Continue.
func (r *RedisServer) Stop() { r.signal(syscall.SIGSTOP) }

// Continue ends the effect of Stop.
func (r *RedisServer) Continue() { r.signal(syscall.SIGCONT) }

func (r *RedisServer) signal(s syscall.Signal) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}
