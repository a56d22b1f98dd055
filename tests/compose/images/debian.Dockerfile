# What the other stand-ins begin with: Debian 12 by debootstrap, and the certificate authorities of this machine, since
# a registry behind a mirror or a proxy may have a certificate that only this machine trusts.
FROM scratch
ADD rootfs.tar /
COPY authorities/ /usr/local/share/ca-certificates/
RUN update-ca-certificates
