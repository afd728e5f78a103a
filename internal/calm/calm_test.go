package calm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
)

func TestItIsCalmOnceNothingUrgentWasDoneForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calm.Calm
		<-c.Here() // it is from the beginning
		began := time.Now()
		c.Busy()()
		<-c.Begun()
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			c.Busy()()
		}
		select {
		case <-c.Begun():
			t.Error("it began twice")
		default:
		}
		<-c.Here()
		if took := time.Since(began); took < 1100*time.Millisecond || took > 1300*time.Millisecond {
			t.Errorf("calm after %s", took)
		}
		<-c.Here()
		c.Busy()()
		<-c.Begun()
		<-c.Here()
	})
}

func TestItIsNotCalmWhileSomethingUrgentLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calm.Calm
		began := time.Now()
		short, long := c.Busy(), c.Busy()
		short()
		short() // which ends it once
		time.AfterFunc(10*time.Second, long)
		<-c.Here()
		if took := time.Since(began); took < 10150*time.Millisecond || took > 10400*time.Millisecond {
			t.Errorf("calm after %s", took)
		}
	})
}

func TestManyWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calm.Calm
		c.Busy()()
		calmed := make(chan time.Time)
		for range 100 {
			go func() {
				<-c.Here()
				calmed <- time.Now()
			}()
		}
		first := <-calmed
		for range 99 {
			if at := <-calmed; !at.Equal(first) {
				t.Errorf("one after %s", at.Sub(first))
			}
		}
	})
}
