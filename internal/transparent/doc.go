// Package transparent listens for connections that the network redirects to the gate. The LocalAddr of an accepted
// connection is the destination that its client has chosen.
package transparent
