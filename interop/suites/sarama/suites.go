// Package suites names sarama, whose functional tests `make interop` runs, and toxiproxy, which those tests steer:
// their versions are in go.mod, their checksums, and those of all that they need, in go.sum.
package suites

import (
	_ "github.com/IBM/sarama"
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/Shopify/toxiproxy/v2/collectors"
	_ "github.com/Shopify/toxiproxy/v2/toxics"
)
