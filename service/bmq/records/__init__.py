"""The records that travel between layers: frozen, and known to every layer.

Knows numpy and nothing of ours. No JSON, no Arrow, no Spark, no Kafka: `wire` turns bytes into these,
`monitor` turns these into these, `wire` turns them back into bytes.
"""

from bmq.records.arrays import NEVER as NEVER
from bmq.records.arrays import Absent as Absent
from bmq.records.arrays import Bools as Bools
from bmq.records.arrays import Bytes as Bytes
from bmq.records.arrays import Float64s as Float64s
from bmq.records.arrays import Int8s as Int8s
from bmq.records.arrays import Int32s as Int32s
from bmq.records.arrays import Int64s as Int64s
from bmq.records.arrays import UInt64s as UInt64s
from bmq.records.arrays import Values as Values
from bmq.records.columns import Attributes as Attributes
from bmq.records.columns import Crossings as Crossings
from bmq.records.columns import Ids as Ids
from bmq.records.columns import Readings as Readings
from bmq.records.columns import Reason as Reason
from bmq.records.columns import Sign as Sign
from bmq.records.commands import Command as Command
from bmq.records.commands import Delete as Delete
from bmq.records.commands import Put as Put
from bmq.records.commands import Refused as Refused
from bmq.records.commands import Reply as Reply
from bmq.records.commands import Status as Status
from bmq.records.installation import Installation as Installation
from bmq.records.installation import Limits as Limits
from bmq.records.installation import Tenant as Tenant
from bmq.records.joined_pairs import JoinedPairs as JoinedPairs
from bmq.records.joined_pairs import PairSide as PairSide
from bmq.records.kinds import Family as Family
from bmq.records.kinds import Kind as Kind
from bmq.records.kinds import are_of_family as are_of_family
from bmq.records.kinds import present_kinds as present_kinds
from bmq.records.queries import Band as Band
from bmq.records.queries import Conjunction as Conjunction
from bmq.records.queries import Feed as Feed
from bmq.records.queries import Format as Format
from bmq.records.queries import IndexKind as IndexKind
from bmq.records.queries import Initial as Initial
from bmq.records.queries import JoinQuery as JoinQuery
from bmq.records.queries import JoinSide as JoinSide
from bmq.records.queries import Pattern as Pattern
from bmq.records.queries import Query as Query
from bmq.records.queries import Region as Region
from bmq.records.queries import RegionQuery as RegionQuery
from bmq.records.queries import Shape as Shape
from bmq.records.queries import ShapeKind as ShapeKind
from bmq.records.queries import TimeUnit as TimeUnit
from bmq.records.queries import Where as Where
from bmq.records.state import Clock as Clock
from bmq.records.state import Delta as Delta
from bmq.records.state import JoinRows as JoinRows
from bmq.records.state import StreamRows as StreamRows
from bmq.records.state import TrackingRows as TrackingRows
from bmq.records.state import WindowRows as WindowRows
