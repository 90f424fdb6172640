//go:build race

package gatetest

// RaceDetector says whether the race detector is on, under which tests take much longer and more memory.
const RaceDetector = true
