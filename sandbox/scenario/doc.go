// Package scenario reads stories about interruptions and plays them on a
// sandbox.
//
// A story is a txtar archive: prose, then files (manifests, rules), one of them
// called script, a line a step. It reads like a story with a clock that starts
// when AWS gives its notice:
//
//	node a type=m5.large zone=us-east-1a spot
//	wait node a ready
//	apply workloads.yaml
//	wait pods ready
//	interrupt a kind=spot via=fis
//	by 3s node a cordoned
//	until deadline+3s
//	expect every pod whole
//
// What sets the stage and what happens on it:
//
//	node NAME… [type=] [zone=] [spot|on-demand] [labels=a=b,c=d] [taints=key=value:NoSchedule]
//	apply FILE                  creates its objects; ${cron +20s} in it is when a window opens:
//	                            at the first full minute at least so far ahead
//	rules standard|none|from FILE
//	lifeboat on [sources=] [status-interval=] [status-threshold=] [autoscaling-interval=] | off | kill
//	agents on|off
//	karpenter on [hears] [boot-delay=15s] | off | kill   see below
//	capacity none [type=] [zone=] [spot|on-demand] | back
//	interrupt NODE… kind=spot|rebalance|scheduled|status [via=ec2|fis|queue] [notice=] [code=] [capacity=none]
//	                            with capacity=none EC2 has no more of what it takes back
//	call-off NODE…              AWS cancels what it had planned
//	approve|hold|release NODE by=NAME
//
// The clock counts from the notice of the latest interrupt. Moments are 30s,
// deadline-10s (what the notice says is due), window+5s and, for what pods were
// asked, job (when the latest Job completed). What is demanded, and when:
//
//	wait CONDITION [within 60s] what follows is built on it: else the story ends here
//	expect CONDITION            now
//	at 60s CONDITION            at that moment
//	by 3s CONDITION             at that moment or before
//	always CONDITION            from here to the end, whenever anything changes
//	until 60s                   lets time pass
//
// The conditions:
//
//	pods ready                  all workloads that were applied are
//	pods [web-*] lost=0 cut<=1  so many pods of the interrupted nodes came to that end
//	pods web-* ready>=1         so many serve, on whatever node
//	every|some|no pod whole     whole, cut, lost, kept, leaving or asked
//	pod web-* asked after 60s   after or before; or one of those ends
//	pod web-* grace<=110        the grace that it was given, in seconds
//	pod web-* owned|unowned     whether a controller has it
//	node a cordoned             ready, not-ready, cordoned, at-risk, open, empty, draining, dark,
//	                            gone, as-before: byte for byte, protected from Karpenter or
//	                            unprotected
//	node a pods=4               so many have to leave it
//	nodes draining<=1           so many are in such a state
//	instances=1 launched=2      so many EC2 instances run, or ever were launched
//	claims=1                    so many NodeClaims there are
//	job flush-* complete        running, complete, failed or none
//	record a phase=Ignored      and action=, policy=, kinds=, sources=, wiring=, replacement=; or none
//
// Where Karpenter provisions, karpenter on is the first line: the sandbox is made with
// it. Its EC2NodeClass and NodePool are applied like other objects. It hears of no
// interruption unless that line says hears; boot-delay is what an instance takes to
// its node. What it launches has no name until the story gives it one:
//
//	karpenter on boot-delay=15s
//	apply karpenter.yaml
//	apply workloads.yaml
//	wait node a launched        the first instance that has no name yet is called a
//	wait pods ready
//	interrupt a kind=spot
//	wait node b launched
//
// Where an Auto Scaling group does, group makes one, with Lifeboat's lifecycle hooks on
// it and Lifeboat's agent on its instances unless it says otherwise; what the group
// launches is named as with Karpenter. The clock starts, too, with what has the group
// change, and there is no deadline then:
//
//	group web desired=2 warm=1 boot=3s prepare=6s    and min= max= type= zones= spot rebalance pool=
//	                            reuse hooks= launch-time= terminate-time= agent= labels= taints=
//	scale web to 3
//	refresh web                 an instance refresh
//	balance web                 its zones, as after a zone had no capacity
//	detach a                    out of its group, which launches another
//	terminate a by=autoscaler   as the cluster-autoscaler does; by=group; by=ec2, past the group
//
// An instance takes boot from power to its first program, each time, and prepare once on
// its disk. With warm=1 there is one in the warm pool, with pool= alone as many as are
// missing to max. With agent=silent the agent answers no hook, with agent=none there is
// none and the kubelet starts at boot. What is demanded of groups:
//
//	group web in-service=2      joining, warming, warm, leaving, retained; answered, timed-out
//	                            and abandoned: hooks so far; warm-nodes: Nodes of instances that
//	                            are in the pool or on their way there; early-nodes: Nodes that
//	                            take pods before their instance is in service
//	instance a is Warmed:Stopped    or was; as Auto Scaling writes it
//	instance a answered=2       so often was a hook that held it answered
//	every hook of web answered
//
// [Parse] is strict: it names the line and says what to write. [Run] plays. What
// happened is judged from the API server and the machines alone, by [World],
// which is pure; what Lifeboat says about itself is shown, but proves nothing.
package scenario
