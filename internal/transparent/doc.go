// Package transparent listens for connections that the network redirects to the gate. The LocalAddr of an accepted
// connection is the destination that its client has chosen.
package transparent

// Where to change what.
//
//	which redirected connections are refused:
//		proxy/transparent.go; the log: proxy/internal/client/redirected.go; the counts: proxy/internal/client/conncounter.go
