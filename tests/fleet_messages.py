"""Messages of Protobuf for tests, and their descriptor set, which protoc would make of a file fleet.proto."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

FIELD = descriptor_pb2.FieldDescriptorProto


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    """Return the descriptor set of the file and of what it imports."""
    file = descriptor_pb2.FileDescriptorProto(
        name="fleet.proto", package="fleet", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    location = file.message_type.add(name="Location")
    location.field.add(name="x", number=1, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
    colour = file.enum_type.add(name="Colour")
    for number, name in enumerate(("RED", "GREEN")):
        colour.value.add(name=name, number=number)
    reading = file.message_type.add(name="Reading")
    for number, (name, kind, type_name) in enumerate(
        (
            ("id", FIELD.TYPE_STRING, ""),
            ("ts", FIELD.TYPE_INT64, ""),
            ("at", FIELD.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
            ("location", FIELD.TYPE_MESSAGE, ".fleet.Location"),
            ("y", FIELD.TYPE_SINT32, ""),
            ("colour", FIELD.TYPE_ENUM, ".fleet.Colour"),
            ("flag", FIELD.TYPE_BOOL, ""),
            ("raw", FIELD.TYPE_BYTES, ""),
            ("sector", FIELD.TYPE_STRING, ""),
        ),
        start=1,
    ):
        named = {"type_name": type_name} if type_name else {}
        reading.field.add(name=name, number=number, type=kind, label=FIELD.LABEL_OPTIONAL, **named)
    reading.field.add(name="tags", number=20, type=FIELD.TYPE_STRING, label=FIELD.LABEL_REPEATED)
    imported = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(imported)
    return descriptor_pb2.FileDescriptorSet(file=[imported, file])


DESCRIPTORS = _descriptors()


def reading_class() -> Any:
    """Return the class of `fleet.Reading`."""
    pool = descriptor_pool.DescriptorPool()
    for file in DESCRIPTORS.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("fleet.Reading"))
