// franz-go against a running cluster: `go run . BOOTSTRAP`. Produces with every codec, idempotently, consumes what it
// wrote, in order, by assignment and once as a member of a group. Any doubt ends it with exit code 1. With three
// arguments more, `produce|consume|write|read TOPIC GROUP`, it carries lines, or keys and values, into and out of a
// topic.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const records = 300

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	bootstrap := strings.Split(os.Args[1], ",")
	if len(os.Args) > 4 {
		if err := lines(ctx, bootstrap, os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fail(os.Args[2], err)
		}
		return
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := "go-" + name
		if err := roundTrip(ctx, bootstrap, topic, codecs[name]); err != nil {
			fail(topic, err)
		}
	}
	group := []kgo.Opt{kgo.ConsumerGroup("go-group"), kgo.ConsumeTopics("go-zstd")}
	if err := consume(ctx, bootstrap, "go-zstd", group); err != nil {
		fail("group", err)
	}
	fmt.Println("done")
}

func lines(ctx context.Context, bootstrap []string, what, topic, group string) error {
	switch what {
	case "produce":
		return produceLines(ctx, bootstrap, topic)
	case "write":
		return writeTable(ctx, bootstrap, topic)
	case "read":
		return readTable(ctx, bootstrap, topic)
	}
	return consumeLines(ctx, bootstrap, topic, group)
}

func fail(what string, err error) {
	fmt.Fprintln(os.Stderr, what+":", err)
	os.Exit(1)
}

func roundTrip(ctx context.Context, bootstrap []string, topic string, codec kgo.CompressionCodec) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ProducerBatchCompression(codec))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := create(ctx, client, topic); err != nil {
		return err
	}
	var batch []*kgo.Record
	for number := 0; number < records; number++ {
		batch = append(batch, &kgo.Record{Topic: topic, Partition: 0, Value: []byte(value(topic, number))})
	}
	if err := client.ProduceSync(ctx, batch...).FirstErr(); err != nil {
		return err
	}
	assigned := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	return consume(ctx, bootstrap, topic, []kgo.Opt{kgo.ConsumePartitions(assigned)})
}

func create(ctx context.Context, client *kgo.Client, topic string) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, 1, 3
	request.Topics = append(request.Topics, wanted)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

func consume(ctx context.Context, bootstrap []string, topic string, how []kgo.Opt) error {
	reset := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	client, err := kgo.NewClient(append(how, kgo.SeedBrokers(bootstrap...), reset)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for number := 0; number < records; {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return err
		}
		for _, record := range fetched.Records() {
			if string(record.Value) != value(topic, number) {
				return fmt.Errorf("record %d is %.40q", number, record.Value)
			}
			number++
		}
	}
	return nil
}

func value(topic string, number int) string {
	return fmt.Sprintf("%s-%d-%s", topic, number, strings.Repeat("abcdefgh", number%30))
}
