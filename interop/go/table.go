package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// writeTable produces lines of standard input, `key TAB value` or, for a tombstone, `key`, to partition 0 of the topic.
func writeTable(ctx context.Context, bootstrap []string, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(700))
	if err != nil {
		return err
	}
	defer client.Close()
	var first error
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		key, value, found := strings.Cut(input.Text(), "\t")
		record := &kgo.Record{Key: []byte(key)}
		if found {
			record.Value = []byte(value)
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
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

// readTable prints what partition 0 held when it was called, each line with its offset in front.
func readTable(ctx context.Context, bootstrap []string, topic string) error {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ConsumePartitions(start))
	if err != nil {
		return err
	}
	defer client.Close()
	end, err := endOf(ctx, client, topic)
	if err != nil {
		return err
	}
	for next := int64(0); next < end; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			next = record.Offset + 1
			if record.Value == nil {
				fmt.Printf("%d\t%s\n", record.Offset, record.Key)
			} else {
				fmt.Printf("%d\t%s\t%s\n", record.Offset, record.Key, record.Value)
			}
		}
	}
	return nil
}

func endOf(ctx context.Context, client *kgo.Client, topic string) (int64, error) {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	asked := kmsg.NewListOffsetsRequestTopic()
	asked.Topic = topic
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = -1
	asked.Partitions = append(asked.Partitions, partition)
	request.Topics = append(request.Topics, asked)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	found := response.Topics[0].Partitions[0]
	if found.ErrorCode != 0 {
		return 0, fmt.Errorf("ListOffsets: error %d", found.ErrorCode)
	}
	return found.Offset, nil
}
