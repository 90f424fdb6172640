//go:build race

package gatetest

const race = true
