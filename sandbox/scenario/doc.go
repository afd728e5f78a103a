// Package scenario reads scenarios of interruptions and runs them on a sandbox.
//
// A scenario is a txtar archive: prose, then files (manifests, rules). One file is called script
// and has one step on each line. The clock starts when AWS sends the notice:
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
// Steps that prepare and change the world:
//
//	node NAME… [type=] [zone=] [spot|on-demand] [labels=a=b,c=d] [taints=key=value:NoSchedule]
//	apply FILE                  creates its objects; ${cron +20s} in it sets when a window opens:
//	                            at the first full minute that is at least so far ahead
//	rules standard|none|from FILE
//	lifeboat on [sources=] [status-interval=] [status-threshold=] [autoscaling-interval=] | off | kill
//	agents on|off
//	boot 15s|ordinary           instances that are launched from here on become nodes after that
//	                            time; at first, and with ordinary, after 30 to 60 s
//	karpenter on [own-queue] [guard] | off | kill   see below
//	capacity none [type=] [zone=] [spot|on-demand] | back
//	interrupt NODE… kind=spot|rebalance|scheduled|status [via=ec2|fis|queue] [notice=] [code=] [capacity=none]
//	                            with capacity=none EC2 has no more capacity of that kind
//	cancel NODE…                AWS cancels the scheduled event
//	chaos FAULT [for=10s] [seed=1]
//	                            breaks a part of the sandbox for that time, while the script goes
//	                            on; package chaos lists the faults
//	approve|hold|release NODE by=NAME
//
// The clock counts from the notice of the latest interrupt. Moments are 30s, deadline-10s (relative
// to the notice's deadline) and window+5s. "pod NAME asked after" also knows job: when the latest Job
// completed. Checks, and their times:
//
//	wait CONDITION [within 60s] the next lines depend on it; without it, the scenario stops here
//	expect CONDITION            now
//	at 60s CONDITION            at that moment
//	by 3s CONDITION             at that moment or before
//	always CONDITION            from here to the end, at every change
//	until 60s                   waits until that moment
//
// The conditions:
//
//	pods ready                  all pods of all applied workloads
//	pods [web-*] lost=0 cut<=1  number of pods of the interrupted nodes by result
//	pods web-* ready>=1         number of Ready pods, on any node
//	every|some|no pod whole     whole, cut, lost, kept, leaving or asked
//	deployment web available>=3 available replicas in its status
//	deployments serving         each has as many Ready pods as it wants; surged pods count, and pods
//	                            that stop do not
//	deployments available       no status says less than the rollout strategy allows
//	pod web-* asked after 60s   after or before; or one of those results
//	pod web-* grace<=110        its grace period in seconds
//	pod web-* owned|unowned     whether it has a controller
//	node a cordoned             ready, not-ready, cordoned, at-risk, open, empty, draining,
//	                            powered-off, gone, as-before (byte for byte), protected from
//	                            Karpenter or unprotected
//	node a pods=4               number of pods that must leave it
//	nodes draining<=1           number of nodes in such a state
//	instances=1 launched=2      number of EC2 instances that run, or that were ever launched
//	claims=1                    number of NodeClaims
//	job flush-* complete        running, complete, failed or none
//	record a phase=Ignored      and action=, policy=, kinds=, sources=, wiring=, replacement=; or none
//
// If Karpenter provisions, karpenter on is the first line after boot, because the sandbox starts with it. Its
// EC2NodeClass and NodePool are applied like other objects. With own-queue, Karpenter receives
// interruptions from a queue of its own. With guard, Lifeboat's admission policy guards its
// NodeClaims. A launched
// instance has no name until the script names it:
//
//	boot 15s
//	karpenter on
//	apply karpenter.yaml
//	apply workloads.yaml
//	wait node a launched        the first instance that has no name yet is called a
//	wait pods ready
//	interrupt a kind=spot
//	wait node b launched
//
// If an Auto Scaling group provisions, group creates it. By default it has Lifeboat's lifecycle
// hooks, and its instances run Lifeboat's agent. Its instances get names as with Karpenter. Each of
// the other statements below starts the clock too, without a deadline:
//
//	group web desired=2 warm=1 boot=3s prepare=6s    and min= max= type= zones= spot rebalance pool=
//	                            reuse hooks= launch-time= terminate-time= agent= labels= taints=
//	scale web to 3
//	refresh web                 an instance refresh
//	balance web                 balances its zones, as after a zone had no capacity
//	detach a                    detaches it from its group, which launches a replacement
//	terminate a by=autoscaler   as the cluster-autoscaler does; by=group; by=ec2, past the group
//
// boot is the time from power-on to an instance's first program, at each boot. prepare is the time
// of a preparation, once on each disk. With warm=1 one instance is in the warm pool; with pool=
// alone, as many as are missing to max. With agent=silent the agent answers no hook. With agent=none
// there is no agent, and the kubelet starts at boot. Conditions of groups:
//
//	group web in-service=2      joining, warming, warm, leaving, retained; answered, timed-out
//	                            and abandoned: hooks so far; warm-nodes: Nodes of instances that
//	                            are in the pool or on their way there; early-nodes: Nodes that
//	                            accept pods before their instance is in service
//	instance a is Warmed:Stopped    or was; a lifecycle state of Auto Scaling
//	instance a answered=2       number of hooks of the instance that have an answer
//	every hook of web answered
//
// [Parse] is strict: its errors name the line and the correction. [Run] executes a scenario.
// [World] is pure and evaluates only observations of the API server and of the machines. The
// timeline shows what Lifeboat reports about itself, but expectations do not rely on it.
package scenario
