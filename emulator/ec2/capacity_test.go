package ec2

import (
	"errors"
	"testing"
	"time"
)

func (w *world) reserve(t *testing.T, market, reservation string) string {
	t.Helper()
	made, err := w.Launch(LaunchInput{ImageID: "ami-0abc", Zone: "eu-west-1b", Min: 1, Max: 1, Market: market, CapacityReservationID: reservation})
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	return made[0].ID
}

func TestReservedCapacityIsReclaimed(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		interruptible := w.reserve(t, InterruptibleReservation, "cr-1")
		block := w.reserve(t, CapacityBlock, "cr-2")
		plain := w.launch(t, nil)
		err := w.Reclaim([]string{interruptible, plain}, ReclaimOptions{})
		if refused := (*NotReservedError)(nil); !errors.As(err, &refused) || refused.ID != plain {
			t.Errorf("reclaimed an instance on demand: %v", err)
		}
		w.pass(0)
		w.forget()
		began := time.Now()
		if err := w.Reclaim([]string{interruptible, block}, ReclaimOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(2*time.Minute - 1)
		in, _ := w.Instance(interruptible)
		same(t, "until the end", in.State, Running)
		w.pass(5 * time.Second)

		end := began.Add(2 * time.Minute).UTC().Format("2006-01-02T15:04:05Z")
		arn := " arn:aws:ec2:eu-west-1:210987654321:instance/"
		same(t, "warnings", w.events[:2], []string{
			"3s EC2 Capacity Reservation Instance Interruption Warning" + arn + interruptible + ` {"instance-id":"` + interruptible +
				`","instance-action":"terminate","instance-termination-time":"` + end + `","azId":"euw1-az2"}`,
			"3s EC2 Capacity Reservation Instance Interruption Warning" + arn + block + ` {"instance-id":"` + block +
				`","instance-action":"terminate","instance-termination-time":"` + end + `","availability-zone-id":"euw1-az2","instance-lifecycle":"capacity-block"}`,
		})
		for _, id := range []string{interruptible, block} {
			in, _ = w.Instance(id)
			same(t, "at the end", []string{string(in.State), in.StateReason.Code}, []string{"terminated", "Server.InsufficientInstanceCapacity"})
		}
		in, _ = w.Instance(plain)
		same(t, "the other one", in.State, Running)
	})
}

func TestCapacityBlockExpires(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		block, other := w.reserve(t, CapacityBlock, "cr-2"), w.reserve(t, CapacityBlock, "cr-3")
		w.pass(0)
		w.forget()
		end := time.Now().Add(40 * time.Minute).UTC().Format("2006-01-02T15:04:05Z")
		w.ExpireBlock("cr-2", 0)
		w.pass(10*time.Minute - 1)
		same(t, "the warning alone", w.events, []string{
			"2s Capacity Block Reservation Expiration Warning arn:aws:ec2:eu-west-1:210987654321:capacity-reservation/cr-2" +
				` {"capacity-reservation-id":"cr-2","end-date":"` + end + `"}`,
		})
		w.pass(time.Minute)
		gone, _ := w.Instance(block)
		left, _ := w.Instance(other)
		same(t, "states", []InstanceState{gone.State, left.State}, []InstanceState{Terminated, Running})
	})
}

func TestInvalidMarketsAreRejected(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		for code, input := range map[string]LaunchInput{
			"InvalidParameterValue":       {Market: "flea", CapacityReservationID: "cr-1"},
			"InvalidParameterCombination": {Market: CapacityBlock},
		} {
			input.ImageID, input.Min, input.Max = "ami-0abc", 1, 1
			_, err := w.Launch(input)
			wantCode(t, err, code)
		}
		_, err := w.Launch(LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1, Market: CapacityBlock, CapacityReservationID: "cr-1", Spot: &SpotOptions{}})
		wantCode(t, err, "InvalidParameterCombination")
	})
}
