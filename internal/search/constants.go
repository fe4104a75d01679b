package search

import "time"

// Most values of this file were tuned by hand on the servers of internal/truth. The
// comments give the purpose of a value. docs/find-method.md lists the most important ones.

// defaultWithin is the default of Search.Within: 5 % between two named loads.
const defaultWithin = 0.05

// Bounds of a search.
const (
	// maxProbes ends a search if it does not end by itself. Most searches take 8 to 12
	// probes.
	maxProbes = 60
	// maxFullProbes bounds the full probes of one load if no other load can be tried.
	maxFullProbes = 5
	// maxVoidProbes is the number of void probes after which the search gives up: three
	// loads, each tried twice.
	maxVoidProbes = 6
	// RealBudget is the default budget on a real server.
	RealBudget = 4 * time.Minute
	// budgetRequests is the default budget in virtual time: the time of this many requests
	// at the limit.
	budgetRequests = 15_000
	// budgetTime is the least default budget in virtual time, so rhythms of minutes
	// show, and maxBudgetRequests bounds it for fast servers.
	budgetTime = 20 * time.Minute
	// maxBudgetRequests is the number of requests at the limit that budgetTime may take.
	maxBudgetRequests = 50_000
	// minBudget is the least default budget in virtual time.
	minBudget = 90 * time.Second
	// unknownBudget is the time until the first answers.
	unknownBudget = 24 * time.Hour
	// clusterTime is the longest time of a probe in which a few clusters of misses decide,
	// unless its requests take longer.
	clusterTime = 60 * time.Second
	// fullBudgetDivisor is the part of the remaining time that one probe may take.
	fullBudgetDivisor = 3
)

// Sizes of probes, in requests of the steady part.
const (
	// aloneRequests is the least size of the first probe, which sends one request at
	// a time and therefore is slow.
	aloneRequests = 4
	// aloneMaxFactor is the ratio of the largest to the least size of the first probe.
	// It bounds the time, because each request costs its whole latency.
	aloneMaxFactor = 3
	// scoutRequests is the least size of a scout, and the least sample of which
	// percentiles and slopes are computed at all.
	scoutRequests = 20
	// scoutMaxFactor is the ratio of the largest to the least size of a scout. A short
	// probe is at least as large as the largest scout.
	scoutMaxFactor = 5
	// fullMinFactor is the ratio of the sizes at which a full probe and a scout are
	// judged first: 60 requests.
	fullMinFactor = 3
	// fullTailRequests is the number of requests beyond the percentile at the limit
	// that a full probe takes: 2,000 requests for a p99. Their number then has a
	// standard error of 22 % if they are independent.
	fullTailRequests = 20
	// minFullRequests is the least size of a full probe. In smaller probes a few
	// clusters of slow requests decide.
	minFullRequests = 1000
	// meanRequests is the size of a full probe for a mean. A mean of waiting times
	// varies as much as a p99, because a few long waits dominate it.
	meanRequests = 2000
	// shortProbeDivisor is the ratio of the sizes of a full and a short probe. A short
	// probe only narrows a wide bracket, and longer probes check the result.
	shortProbeDivisor = 4
	// failureTailRequests is the expected number of failures in a full probe at the
	// limit of a goal on failures. If none of 3 expected failures occurs, the share is
	// below the limit at a confidence of 95 % (exp(-3) = 0.05).
	failureTailRequests = 3
	// maxFailureRequests bounds the size required by a goal on failures: error<0.1%
	// would take 3,000 requests.
	maxFailureRequests = 1000
	// enoughShare is the required share of the wanted requests after the
	// warm-up to make a probe a full one.
	enoughShare = 0.75
	// warmupCeilingFactor extends the most requests of a probe, because the first
	// third of its time may be warm-up.
	warmupCeilingFactor = 1.5
)

// Durations of probes.
const (
	// scoutTime is the least duration of a scout or a short probe. It is short because
	// a scout may be far above the limit, and the search then waits for the backlog.
	scoutTime = 2 * time.Second
	// fullTime is the least duration of a full probe, because servers stall and fill
	// for seconds.
	fullTime = 20 * time.Second
	// fullTimeRequests is the number of requests after which a full probe needs no more time.
	fullTimeRequests = 20_000
	// observeDivisor is the part of the budget for which the named load, or loads between it
	// and the limit, are observed: 48 s of 4 minutes.
	observeDivisor = 5
	// maxObserveTime is the longest such time.
	maxObserveTime = 4 * time.Minute
	// observeRequests is the number of requests after which they need no more time.
	observeRequests = 20_000
	// minLatencies is the least duration of a probe in p95 latencies of a request. A
	// server fills for at least one latency.
	minLatencies = 5
	// scoutMinLatencies is the same for a scout, which only has to see a load far above
	// the limit.
	scoutMinLatencies = 2
)

// Loads of probes, as ratios of loads.
const (
	// scoutStep is the ratio of the loads of successive scouts: 6 scouts span a factor
	// of 1,000.
	scoutStep = 4
	// nearStep is the step up from a load measured by a longer probe, because the
	// limit seemed to be near it.
	nearStep = 2
	// wideBracket is the ratio of the ends of a bracket above which short probes
	// narrow it. Below it, full probes do.
	wideBracket = 1.2
	// wideBracketMargin is the share of the logarithmic width of a wide bracket that a
	// proposed load keeps from both ends, so each probe narrows the bracket.
	wideBracketMargin = 0.15
	// belowMargin is the distance of a proposed load below the estimated limit, in
	// units of Within: 1.75 %. It is small, because this load is the answer.
	belowMargin = 0.35
	// aboveMargin is the distance of a proposed load above the estimate, in units of
	// Within: 3.5 %.
	aboveMargin = 0.7
	// marginGrowth is the growth of these distances with each full probe between.
	marginGrowth = 0.4
	// maxMarginGrowth bounds this growth.
	maxMarginGrowth = 1.55
	// sameLoad is the distance up to which a load counts as measured, in units of Within.
	sameLoad = 0.2
	// clientLimitRatio ends the narrowing of a bracket whose upper end is a load that
	// the client cannot send, because that end says nothing about the server.
	clientLimitRatio = 1.5
	// scoutMargin is the ratio by which a scout must be below the lowest miss to count
	// as a load that holds. A scout ends before a load near the limit shows its effect.
	scoutMargin = 1.3
	// recheckMisses is the number of misses above a load measured only by a scout,
	// after which a short probe measures the load again. The scout may have been wrong.
	recheckMisses = 2
	// oneSidedProbes is the number of successive probes on one side of the limit after
	// which the search bisects, because the estimate is wrong.
	oneSidedProbes = 3
	// maxMissRatio bounds the miss ratio of a probe, so an overloaded server does
	// not outweigh all other probes in the isotonic regression.
	maxMissRatio = 100
	// foundFactor is the distance of the two ends at which the search ends, in units of
	// Within.
	foundFactor = 1.5
	// foundWithinFactor is the width of an accepted bracket, in units
	// of Within: 8.5 %. The search accepts it if it must stop.
	foundWithinFactor = 1.7
	// lowestLoadFactor is the factor below one request at a time at which a miss shows
	// that no load holds. 16 is two scout steps.
	lowestLoadFactor = 16
	// persistentMissShare is the share of misses left at a quarter of the load above
	// which load is not the cause. A queue would leave a quarter or less.
	persistentMissShare = 0.5
	// persistentGrowth is the ratio of the rates of good requests at two such loads.
	persistentGrowth = 1.5
	// maxPersistentShare is the share of misses above which the server may be overloaded,
	// so nothing is known about lower loads.
	maxPersistentShare = 0.5
)

// Significance levels and the rule for one probe.
const (
	// scoutAlpha is the significance level of a scout. Later probes correct its errors.
	scoutAlpha = 0.2
	// fullAlpha is the significance level of other probes if they stop early.
	fullAlpha = 0.05
	// decideAlpha is the significance level of the two named loads.
	decideAlpha = 0.25
	// intervalAlpha is the significance level of each end of the interval. It is a fifth of
	// 0.025, because the search chooses the probes that count for an end.
	intervalAlpha = 0.005
	// emptyServerMargin widens the interval by 2 %, because each probe begins with an
	// empty server and therefore flatters it.
	emptyServerMargin = 1.02
	// checkGrowth is the ratio of the requests at two successive checks of a running
	// probe: about 20 checks for 2,000 requests.
	checkGrowth = 1.2
	// checkPenalty divides the significance level of a check, because there are about
	// 20 checks. It is less than 20, because the checks see mostly the same requests.
	checkPenalty = 6
	// scoutClearance is the share of a limit below which a scout holds, and above whose
	// inverse it misses, without a significant test.
	scoutClearance = 0.6
	// scoutEffectiveSize is the effective sample size for such a verdict.
	scoutEffectiveSize = 4
)

// Effective sample size of the miss ratio of a goal.
const (
	// minClusters is the number of independent clusters of misses that prove something.
	minClusters = 3
	// relevantShare is the share of the allowed misses from which a cluster matters.
	relevantShare = 0.25
	// unknownRunLength is the assumed length of a run of misses below minClusters.
	unknownRunLength = 3
	// parts is the number of parts of a probe that are compared.
	parts = 10
	// minInflation is the ratio of the variance between parts to the variance of
	// independent requests from which on the parts disagree.
	minInflation = 2.5
	// gapReach is the ratio of loads down to which clusters of misses in another probe
	// count, and gapReachAbove up to which.
	gapReach = 8
	// gapReachAbove is smaller, because a higher load has clusters of its own.
	gapReachAbove = 1.15
	// minBurst is the least number of requests before and after the first refused one that
	// show a quota with a burst.
	minBurst = 20
	// maxAcceptedShare is the share of requests accepted after a burst has run out.
	maxAcceptedShare = 0.95
	// minLateShare is the least share of the refusals in the later half of the time.
	minLateShare = 0.25
	// burstMargin is the ratio of a load to the accepted rate above which a burst runs out.
	burstMargin = 1.01
	// burstFactor extends the time in which it runs out, so the refusals count.
	burstFactor = 1.5
	// maxThresholdShare bounds the share of slow requests at the
	// thresholds of clusterFactors.
	maxThresholdShare = 0.25
)

// clusterFactors set two thresholds at which the clustering of slow requests is
// measured, in units of the share that may miss the goal. Near the limit enough
// requests are beyond these thresholds, though few miss the goal itself.
var clusterFactors = [...]float64{1.5, 5}

// Warm-up and overload of an open loop.
const (
	// latencyQuantile is the percentile of request durations used as
	// the time after which the server is full.
	latencyQuantile = 0.95
	// warmupLatencies is the longest warm-up, in p95 latencies. Near its limit a
	// server fills for several times as long as a request takes.
	warmupLatencies = 5
	// warmupDivisor makes a quarter of the probe warm-up, if this is shorter.
	warmupDivisor = 4
	// latencyWarmupDivisor bounds the least warm-up of one p95 latency to a third of
	// the probe.
	latencyWarmupDivisor = 3
	// risingSigma is the significant rise of the requests in flight, in
	// standard errors.
	risingSigma = 2
	// growingSigma is the rise, in standard errors, at which a probe ends as overrun. It is
	// larger, because such a verdict is final.
	growingSigma = 4
	// growingLatencies is the minimum length of the steady part before a rise counts
	// as overrun, in p95 latencies.
	growingLatencies = 2
	// minQuarterLatencies bounds the standard error if a quarter of the steady part is
	// much shorter than a request.
	minQuarterLatencies = 0.25
	// overrunShare is the unserved share of the arrivals at which a probe ends.
	// A smaller share stays unserved for a while if a server fills near its limit.
	overrunShare = 0.2
	// overrunShareAtEnd is the same for a probe with all of its requests.
	overrunShareAtEnd = 0.05
	// overloadDoubt is the ratio of the times in which a server kept up with a load, or a higher
	// one, and in which it did not, from which on the overload was random variation.
	overloadDoubt = 3
	// keptUpShare is the served share of the arrivals in the last third
	// of any probe if it keeps up.
	keptUpShare = 0.7
	// keptUpSigma is the significant backlog there, in standard deviations of
	// a Poisson number of arrivals.
	keptUpSigma = 3
)

// Drift: two contradictory probes.
const (
	// contradictionAlpha bounds the p-values of two probes that contradict each other. It
	// is small, because there are many pairs of probes.
	contradictionAlpha = 0.005
	// driftLogLatency is the least rise of the mean logarithm of latency: 20 %. A
	// smaller rise moves the limit by less than its uncertainty.
	driftLogLatency = 0.18
	// driftSigma is the least rise in standard errors. It is large because there are
	// many pairs of probes, and the standard errors are estimates.
	driftSigma = 6.0
)

// The regression of next.go. Distances are differences of logarithms of loads.
const (
	// fitReach is the standard deviation of the Gaussian weight by distance.
	fitReach = 0.12
	// farWeight is the weight of a probe beyond all reach, so the nearest one
	// counts if there is no near one.
	farWeight = 1e-4
	// defaultPower is the prior mean of the power of the load with which latency grows.
	defaultPower = 3.0
	// defaultPowerWeight is the weight of the prior, in requests times squared distance.
	defaultPowerWeight = 0.2
	// minPower is the least power: below it the estimate would extrapolate too far up.
	minPower = 0.7
	// maxPower is the largest power: above it the estimate would not leave the probes.
	maxPower = 30.0
	// fitRounds is the number of iterations of the fit, whose weights depend on its result.
	fitRounds = 6
	// maxLogPressure bounds the logarithm of a value relative to its limit.
	maxLogPressure = 3.0
	// maxFitStep bounds the step of an iteration.
	maxFitStep = 0.3
)

// epsilon keeps divisors above zero.
const epsilon = 1e-12
