package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// produceLines writes each line of standard input to the topic and returns once all are acknowledged.
func produceLines(ctx context.Context, bootstrap []string, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	var first error
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		line := []byte(input.Text())
		client.Produce(ctx, &kgo.Record{Key: line, Value: line}, func(_ *kgo.Record, err error) {
			if err != nil && first == nil {
				first = err
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return first
}

// consumeLines prints what the members of a group are given, and never ends. GROUP_PROTOCOL=consumer in the environment
// makes them members of the consumer protocol (KIP-848).
func consumeLines(ctx context.Context, bootstrap []string, topic, group string) error {
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(time.Second), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if os.Getenv("GROUP_PROTOCOL") == "consumer" {
		// the key by which franz-go lets its users in
		options = append(options, kgo.WithContext(context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		for _, record := range client.PollFetches(ctx).Records() {
			fmt.Println(string(record.Value))
		}
		// what a commit meets while a broker is away, the next one mends
		_ = client.CommitUncommittedOffsets(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
