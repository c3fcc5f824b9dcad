// Package suites names the clients whose own tests `make interop` runs: their versions are in go.mod, their checksums,
// and those of all that their tests need, in go.sum.
package suites

import (
	_ "github.com/segmentio/kafka-go"
	_ "github.com/twmb/franz-go/pkg/kgo"
)
