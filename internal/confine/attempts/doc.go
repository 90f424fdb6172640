// Package attempts has ways by which a confined command could get around the gate: the attempts of
// doctor --confine and of the tests of run --confine. Each tries to reach a target outside, sends it
// a token or reads a secret, and so succeeds when it runs unconfined.
//
// [Start] starts the targets. [Outside.Command] returns the command that makes the attempts, alone or
// behind the words of another command, which confines it. Each attempt is made by a process of its
// own. Linux only.
package attempts
